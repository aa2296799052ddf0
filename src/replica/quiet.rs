//! For how many ticks nothing happens if no other input comes, so that an idle server need not tick.

use super::core::Core;
use super::role::Role;

/// Connections without a session, and silent ones, are looked for this often.
pub const SWEEP_MS: u64 = 1000;

impl Role {
    /// Ticks from now on that only count time. The number may be too small, never too large.
    pub fn quiet_ticks(&self, core: &Core) -> u64 {
        let sweeps = match self {
            Role::Resting(_) | Role::ReadOnly => return 0,
            Role::Leading(leading) if leading.nears_its_end(core) => return 0,
            Role::Standalone(processor) => Some(&**processor),
            Role::Leading(leading) => Some(&leading.processor),
            Role::Following(_) | Role::Observing(_) => None,
        };
        let next_sweep_ms = (core.now_ms / SWEEP_MS + 1) * SWEEP_MS;
        let dues_ms = [
            Some(next_sweep_ms),
            core.locals.next_due_ms(),
            sweeps.and_then(|processor| processor.sessions.next_due_ms()),
            sweeps.and_then(|processor| processor.sweep.next_look_ms(core)),
        ];
        let ticks = dues_ms.into_iter().flatten().map(|due_ms| core.ticks_before(due_ms));
        ticks.min().unwrap_or(0).min(core.zab.quiet_ticks())
    }
}
