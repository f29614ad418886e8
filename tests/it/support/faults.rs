//! What every fake platform can do to a call: break its answer once, some times, or while a guard
//! lives, and hold it back until released. Which ways of breaking there are, the platforms say.

use tokio::sync::watch;

/// A fake server whose calls can be broken and held.
pub(crate) trait Breakable: Clone {
    /// What is called.
    type Call: PartialEq;
    /// Where that is to happen.
    type Place: Copy + PartialEq;
    type Fault: Copy;

    /// Stands for every call.
    fn is_any(call: &Self::Call) -> bool;

    fn with_faults<T>(&self, change: impl FnOnce(&mut Faults<Self>) -> T) -> T;

    /// Calls wait at this point until the hold is released or dropped.
    fn hold_call(&self, call: Self::Call, point: HoldPoint) -> Hold<Self> {
        let release = watch::Sender::new(false);
        let (target, released) = (Target { call, place: None }, release.subscribe());
        let id = self.with_faults(|faults| {
            faults.next_id += 1;
            faults.holds.push(ArmedHold {
                id: faults.next_id,
                target,
                point,
                released,
            });
            faults.next_id
        });
        Hold {
            server: self.clone(),
            id,
            release,
        }
    }

    /// The oldest fault that fits a call is used.
    fn fail_call(&self, call: Self::Call, fault: Self::Fault) -> FaultPlan<Self> {
        FaultPlan {
            server: self.clone(),
            target: Target { call, place: None },
            fault,
        }
    }
}

pub(crate) struct Faults<S: Breakable> {
    armed: Vec<ArmedFault<S>>,
    holds: Vec<ArmedHold<S>>,
    next_id: u64,
}

struct ArmedFault<S: Breakable> {
    id: u64,
    target: Target<S>,
    fault: S::Fault,
    /// `None` is until disarmed.
    times: Option<usize>,
}

struct ArmedHold<S: Breakable> {
    id: u64,
    target: Target<S>,
    point: HoldPoint,
    released: watch::Receiver<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum HoldPoint {
    BeforeEffect,
    BeforeAnswer,
}

struct Target<S: Breakable> {
    call: S::Call,
    place: Option<S::Place>,
}

impl<S: Breakable> Target<S> {
    fn matches(&self, call: &S::Call, place: Option<S::Place>) -> bool {
        (S::is_any(&self.call) || self.call == *call)
            && (self.place.is_none() || self.place == place)
    }
}

impl<S: Breakable> Default for Faults<S> {
    fn default() -> Self {
        Faults {
            armed: Vec::new(),
            holds: Vec::new(),
            next_id: 0,
        }
    }
}

impl<S: Breakable> Faults<S> {
    /// The fault for this call, if one is due; uses up one of its times.
    pub(crate) fn take(&mut self, call: &S::Call, place: Option<S::Place>) -> Option<S::Fault> {
        let index = self
            .armed
            .iter()
            .position(|armed| armed.target.matches(call, place))?;
        let armed = &mut self.armed[index];
        let fault = armed.fault;
        if let Some(times) = &mut armed.times {
            *times -= 1;
            if *times == 0 {
                self.armed.remove(index);
            }
        }
        Some(fault)
    }

    pub(crate) fn holds(
        &self,
        call: &S::Call,
        place: Option<S::Place>,
        point: HoldPoint,
    ) -> Vec<watch::Receiver<bool>> {
        let applies =
            |hold: &&ArmedHold<S>| hold.point == point && hold.target.matches(call, place);
        self.holds
            .iter()
            .filter(applies)
            .map(|hold| hold.released.clone())
            .collect()
    }

    fn arm(&mut self, target: Target<S>, fault: S::Fault, times: Option<usize>) -> u64 {
        self.next_id += 1;
        self.armed.push(ArmedFault {
            id: self.next_id,
            target,
            fault,
            times,
        });
        self.next_id
    }
}

/// A fault that still needs to know how often.
#[must_use = "say how often: once(), times(n) or until_dropped()"]
pub(crate) struct FaultPlan<S: Breakable> {
    server: S,
    target: Target<S>,
    fault: S::Fault,
}

impl<S: Breakable> FaultPlan<S> {
    pub(crate) fn only_in(mut self, place: S::Place) -> Self {
        self.target.place = Some(place);
        self
    }

    pub(crate) fn once(self) {
        self.times(1);
    }

    pub(crate) fn times(self, times: usize) {
        if times > 0 {
            self.server
                .with_faults(|faults| faults.arm(self.target, self.fault, Some(times)));
        }
    }

    pub(crate) fn until_dropped(self) -> FaultGuard<S> {
        let id = self
            .server
            .with_faults(|faults| faults.arm(self.target, self.fault, None));
        FaultGuard {
            server: self.server,
            id,
        }
    }
}

#[must_use = "the fault ends with its guard"]
pub(crate) struct FaultGuard<S: Breakable> {
    server: S,
    id: u64,
}

impl<S: Breakable> Drop for FaultGuard<S> {
    fn drop(&mut self) {
        self.server
            .with_faults(|faults| faults.armed.retain(|armed| armed.id != self.id));
    }
}

#[must_use = "calls go on when the hold is dropped"]
pub(crate) struct Hold<S: Breakable> {
    server: S,
    id: u64,
    release: watch::Sender<bool>,
}

impl<S: Breakable> Hold<S> {
    pub(crate) fn only_in(self, place: S::Place) -> Self {
        self.server.with_faults(|faults| {
            for hold in faults.holds.iter_mut().filter(|hold| hold.id == self.id) {
                hold.target.place = Some(place);
            }
        });
        self
    }

    /// Lets the held calls go on; the same as dropping the hold.
    pub(crate) fn release(self) {}
}

impl<S: Breakable> Drop for Hold<S> {
    fn drop(&mut self) {
        self.server
            .with_faults(|faults| faults.holds.retain(|hold| hold.id != self.id));
        self.release.send_replace(true);
    }
}
