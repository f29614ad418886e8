use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::domain::AgentUid;

type Waiting = Pin<Box<dyn Future<Output = Slot<AgentUid>>>>;

fn agent(number: u128) -> AgentUid {
    AgentUid(Uuid::from_u128(number))
}

fn wait(slots: &Arc<Slots<AgentUid>>, number: u128) -> Waiting {
    let slots = slots.clone();
    Box::pin(async move { slots.acquire(agent(number)).await })
}

/// The slot, if granted.
fn look(waiting: &mut Waiting) -> Option<Slot<AgentUid>> {
    match waiting
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(slot) => Some(slot),
        Poll::Pending => None,
    }
}

/// S4.42
#[test]
fn an_agent_is_served_next_however_many_another_has_waiting() {
    let slots = Slots::new(1, 2);
    let held = look(&mut wait(&slots, 1)).expect("nobody else is there");
    let mut slow: Vec<Waiting> = (0..1_000).map(|_| wait(&slots, 1)).collect();
    assert!(slow.iter_mut().all(|waiting| look(waiting).is_none()));
    let mut other = wait(&slots, 2);
    assert!(look(&mut other).is_none());
    drop(held);
    assert!(slow.iter_mut().all(|waiting| look(waiting).is_none()));
    let served = look(&mut other).expect("the first slot that is free is the other's");
    drop(served);
    assert!(
        look(&mut slow[0]).is_some(),
        "turns of one agent keep their order"
    );
}

#[test]
fn an_agent_alone_may_have_all_slots_and_one_among_others_may_not() {
    let count = |agents| {
        let slots = Slots::new(8, agents);
        let mut waiting: Vec<Waiting> = (0..20).map(|_| wait(&slots, 1)).collect();
        let held: Vec<Slot<AgentUid>> = waiting.iter_mut().filter_map(look).collect();
        assert!(
            agents == 1 || look(&mut wait(&slots, 2)).is_some(),
            "what is kept is there at once"
        );
        held.len()
    };
    assert_eq!((count(1), count(2)), (8, 6));
}

#[test]
fn parties_that_came_and_went_are_forgotten() {
    let slots = Slots::with_most_of_one(2, 1);
    let held = look(&mut wait(&slots, 0)).expect("a slot is free");
    for number in 1..=3 * MOST_REMEMBERED as u128 {
        assert!(look(&mut wait(&slots, number)).is_some());
    }
    let remembered = slots.state().served.len();
    assert!(remembered <= MOST_REMEMBERED, "{remembered}");
    assert!(slots.state().served.contains_key(&agent(0)));
    drop(held);
}

#[derive(Debug, Clone)]
enum Act {
    Join(u128),
    /// Polls a waiting turn.
    Look(usize),
    /// A waiting turn leaves, granted or not.
    Leave(usize),
    Finish(usize),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        3 => (0..4_u128).prop_map(Act::Join),
        2 => any::<usize>().prop_map(Act::Look),
        1 => any::<usize>().prop_map(Act::Leave),
        2 => any::<usize>().prop_map(Act::Finish),
    ];
    proptest::collection::vec(act, 0..120)
}

/// Holds after every step: the counts are right, and no slot is idle while a turn could take it.
fn check(slots: &Slots<AgentUid>, most: usize) {
    let state = slots.state();
    let running: usize = state.running.values().sum();
    assert_eq!(running, state.in_use, "no slot is lost, none is made up");
    assert!(running <= most);
    assert!(
        state
            .running
            .values()
            .all(|running| (1..=state.most_of_one).contains(running))
    );
    assert!(state.waiting.values().all(|line| !line.is_empty()));
    let could_run = |agent: &AgentUid| {
        state
            .running
            .get(agent)
            .is_none_or(|running| *running < state.most_of_one)
    };
    assert!(
        state.in_use == most || !state.waiting.keys().any(could_run),
        "nobody waits for a slot that is free"
    );
}

/// More slots are given out at once; of fewer slots none is taken back.
#[test]
fn the_number_of_slots_can_change() {
    let slots = Slots::new(1, 1);
    let (mut first, mut second) = (wait(&slots, 1), wait(&slots, 2));
    let held = look(&mut first).expect("there is one");
    assert!(look(&mut second).is_none());
    slots.resize(2, 1);
    let other = look(&mut second).expect("now there are two");
    slots.resize(1, 1);
    let mut third = wait(&slots, 3);
    drop(held);
    assert!(look(&mut third).is_none(), "one is in use, and one is all");
    drop(other);
    assert!(look(&mut third).is_some());
}

proptest! {
    #[test]
    fn no_slot_is_lost_and_none_is_given_twice(most in 1..6_usize, acts in acts()) {
        let slots = Slots::new(most, 4);
        let (mut waiting, mut held): (Vec<Waiting>, Vec<Slot<AgentUid>>) = (Vec::new(), Vec::new());
        for act in acts {
            match act {
                Act::Join(number) => {
                    let mut joined = wait(&slots, number);
                    match look(&mut joined) {
                        Some(slot) => held.push(slot),
                        None => waiting.push(joined),
                    }
                }
                Act::Look(which) if !waiting.is_empty() => {
                    let index = which % waiting.len();
                    if let Some(slot) = look(&mut waiting[index]) {
                        held.push(slot);
                        drop(waiting.swap_remove(index));
                    }
                }
                Act::Leave(which) if !waiting.is_empty() => drop(waiting.swap_remove(which % waiting.len())),
                Act::Finish(which) if !held.is_empty() => drop(held.swap_remove(which % held.len())),
                Act::Look(_) | Act::Leave(_) | Act::Finish(_) => {}
            }
            check(&slots, most);
            prop_assert!(held.len() <= most);
        }
        drop((waiting, held));
        check(&slots, most);
        prop_assert_eq!(slots.state().in_use, 0);
    }

    /// While all agents have waiting turns, each is served before any is served twice.
    #[test]
    fn slots_go_round(agents in 2..6_u128, turns in 1..8_usize) {
        let slots = Slots::new(1, 1);
        let mut held = look(&mut wait(&slots, 99));
        let mut lines: Vec<Vec<Waiting>> = (0..agents).map(|number| (0..turns).map(|_| wait(&slots, number)).collect()).collect();
        lines.iter_mut().flatten().for_each(|waiting| assert!(look(waiting).is_none()));
        let mut served = Vec::new();
        for _ in 0..turns * lines.len() {
            drop(held.take());
            let found = lines.iter_mut().enumerate().find_map(|(line, waiting)| Some((line, look(waiting.first_mut()?)?)));
            let (line, slot) = found.expect("somebody is served");
            drop(lines[line].remove(0));
            held = Some(slot);
            served.push(line);
        }
        for round in served.chunks(lines.len()) {
            prop_assert_eq!(round, (0..lines.len()).collect::<Vec<_>>());
        }
    }
}
