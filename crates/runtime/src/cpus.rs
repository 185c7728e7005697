//! Where and how urgently a thread runs.

use crate::plan::ThreadPlan;
use rustix::thread::{CpuSet, sched_setaffinity};
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

/// Does for the calling thread what its plan says. What the machine refuses is said, and done without.
pub(crate) fn settle(plan: &ThreadPlan) {
    if !plan.cpus.is_empty() {
        let mut cpus = CpuSet::new();
        plan.cpus.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU).for_each(|cpu| cpus.set(*cpu));
        if let Err(error) = sched_setaffinity(None, &cpus) {
            tracing::warn!(cpus = ?plan.cpus, %error, "a thread cannot be bound to these CPUs: it runs anywhere");
        }
    }
    if !plan.realtime && !plan.is_control() {
        return;
    }
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let urgent = ThreadPriority::Min;
    match set_thread_priority_and_policy(thread_native_id(), urgent, policy) {
        Err(error) if plan.realtime => {
            tracing::warn!(%error, "a thread cannot have realtime priority (CAP_SYS_NICE is needed): it runs without");
        }
        Err(error) => {
            tracing::info!(%error, "control's thread runs without realtime priority (CAP_SYS_NICE is needed)");
        }
        Ok(()) => {}
    }
}
