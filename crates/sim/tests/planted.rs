//! For each planted bug some checker must find it, or the checker checks nothing.

use lats_kernel::Fault;
use lats_sim::{Options, run_caught};

/// Looks for the bug in up to `seeds` runs.
#[expect(clippy::print_stdout, reason = "says which checker it was")]
fn must_be_found(bug: Fault, seeds: u64) {
    for seed in 1..=seeds {
        let outcome = run_caught(&Options { seed, bug: Some(bug), verbose: false });
        if let Some(failure) = outcome.failure {
            println!("{bug:?} found by seed {seed}: {failure:.150}");
            return;
        }
    }
    panic!("{bug:?} was not found in {seeds} runs");
}

#[test]
fn a_backup_that_forgets_a_tentative_row_is_found() {
    must_be_found(Fault::BugForgetTentativeRow, 40);
}

#[test]
fn a_backup_that_answers_reads_from_an_old_version_is_found() {
    must_be_found(Fault::BugReadStaleBackup, 40);
}

#[test]
fn a_coordinator_that_answers_too_early_is_found() {
    must_be_found(Fault::BugAnswerEarly, 40);
}

#[test]
fn a_take_over_that_aborts_what_was_decided_is_found() {
    must_be_found(Fault::BugAbortDecided, 40);
}

#[test]
fn a_decision_that_every_part_of_a_transaction_carries_is_found() {
    must_be_found(Fault::BugCarryInParts, 40);
}

#[test]
fn a_backup_that_drops_the_decision_of_its_images_is_found() {
    // The answer must have come through although the node that sent it died at once.
    must_be_found(Fault::BugDropCarriedDecision, 200);
}

#[test]
fn a_coordinator_that_calls_its_epoch_done_too_early_is_found() {
    must_be_found(Fault::BugEpochDoneEarly, 40);
}

#[test]
fn a_coordinator_that_does_not_count_what_it_has_decided_is_found() {
    must_be_found(Fault::BugEpochUncounted, 200);
}

#[test]
fn a_coordinator_that_forgets_a_change_of_a_unique_index_is_found() {
    must_be_found(Fault::BugForgetIndexChange, 40);
}

#[test]
fn an_index_build_that_does_not_see_uncommitted_rows_is_found() {
    must_be_found(Fault::BugBuildWithoutPending, 100);
}

#[test]
fn a_unique_index_that_shows_its_change_before_the_row_does_is_found() {
    must_be_found(Fault::BugShowIndexEarly, 200);
}

#[test]
fn a_node_that_serves_without_a_lease_is_found() {
    // It takes a node that is cut off together with a client that reads there.
    must_be_found(Fault::BugIgnoreLease, 400);
}

#[test]
fn a_refused_statement_that_leaves_something_is_found() {
    must_be_found(Fault::BugKeepRefusedStatement, 40);
}

#[test]
fn a_shared_lock_that_is_none_is_found() {
    must_be_found(Fault::BugShareWithoutLock, 40);
}

#[test]
fn coordinators_that_do_not_look_for_deadlocks_are_found() {
    must_be_found(Fault::BugBlindToDeadlocks, 40);
}

#[test]
fn a_victim_without_a_deadlock_is_found() {
    must_be_found(Fault::BugHastyVictim, 40);
}
