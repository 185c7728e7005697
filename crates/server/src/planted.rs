//! Which planted bug a server has, in builds with the feature `planted` (`cargo xtask planted-sql`).

use lats_base::planted::{QueryBug, choose as have};

/// What names the bug. `start` runs a process for each node, so that an option would have to be handed on.
const VARIABLE: &str = "LATSDB_PLANTED";

/// Hands the bug over that the environment names.
///
/// # Panics
/// For a name that no bug has: without its bug, the server would show that nothing is found.
pub(crate) fn choose() {
    let Some(name) = std::env::var_os(VARIABLE) else { return };
    match QueryBug::ALL.iter().find(|(_, of)| name == **of) {
        Some((bug, _)) => have(*bug),
        None => panic!("{VARIABLE}: there is no planted bug {}", name.display()),
    }
}
