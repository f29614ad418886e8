//! The stand-in of a child for unit tests, which have no program to start. A test can hold a job.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::{Failure, Job, Ran, pipes};

pub(super) async fn run(
    job: &'static Job,
    feed: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static,
) -> Ran {
    let ran = tokio::task::spawn_blocking(move || {
        let (mut input, mut output) = (Vec::new(), Vec::new());
        let fed = pipes::feed(&mut input, &job.limits, feed);
        wait_while_held(&input);
        let worked = (job.work)(&mut input.as_slice(), &mut output);
        let end = fed.and(worked.map_err(|_| Failure::Broke));
        let is_over = output.len() > job.limits.output_bytes;
        output.truncate(job.limits.output_bytes);
        Ran {
            output,
            end: if is_over { Err(Failure::Output) } else { end },
        }
    });
    ran.await.unwrap_or(Ran {
        output: Vec::new(),
        end: Err(Failure::Broke),
    })
}

static HELD: Mutex<Vec<Arc<Gate>>> = Mutex::new(Vec::new());

struct Gate {
    /// Jobs with this in their input are held.
    needle: Vec<u8>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    inside: usize,
    most_inside: usize,
    is_open: bool,
}

/// Holds jobs until it is dropped.
pub(crate) struct Hold(Arc<Gate>);

/// Holds each job with these bytes in its input.
pub(crate) fn hold(needle: &str) -> Hold {
    let gate = Arc::new(Gate {
        needle: needle.as_bytes().to_vec(),
        state: Mutex::default(),
        changed: Condvar::new(),
    });
    locked(&HELD).push(gate.clone());
    Hold(gate)
}

impl Hold {
    /// Returns when a job is held.
    pub(crate) async fn has_one(&self) {
        let gate = self.0.clone();
        let waited = tokio::task::spawn_blocking(move || {
            let state = locked(&gate.state);
            drop(gate.changed.wait_while(state, |state| state.inside == 0));
        });
        waited.await.expect("waiting does not panic");
    }

    /// The most jobs that were held at the same time.
    pub(crate) fn most_inside(&self) -> usize {
        locked(&self.0.state).most_inside
    }

    /// Lets all jobs go on.
    pub(crate) fn open(&self) {
        locked(&self.0.state).is_open = true;
        self.0.changed.notify_all();
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.open();
        locked(&HELD).retain(|gate| !Arc::ptr_eq(gate, &self.0));
    }
}

fn wait_while_held(input: &[u8]) {
    let has = |needle: &[u8]| input.windows(needle.len()).any(|window| window == needle);
    let gate = locked(&HELD).iter().find(|gate| has(&gate.needle)).cloned();
    let Some(gate) = gate else { return };
    let mut state = locked(&gate.state);
    state.inside += 1;
    state.most_inside = state.most_inside.max(state.inside);
    gate.changed.notify_all();
    let waited = gate.changed.wait_while(state, |state| !state.is_open);
    waited.unwrap_or_else(PoisonError::into_inner).inside -= 1;
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
