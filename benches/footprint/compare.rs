//! Parlor beside its floors, in one run and in interleaved rounds, so that a slow minute of the
//! machine is slow for all of them.

use std::path::Path;
use std::time::Instant;

use super::report::{Comparison, Goal, Unit, median, percentile};
use super::scene::{Contender, Gateway, Scene, Size};
use super::{CROWD_MODEL, PAUSE, PLAIN, TURN_TOPICS, mebibytes, milliseconds};

const WARM_UP: usize = 20;
const IN_FLIGHT: usize = 8;
const MANY_AGENTS: usize = 1000;
/// Answers of a crowd that are waited for together.
const AT_A_TIME: usize = 50;

/// How much is measured.
pub(crate) struct Effort {
    pub(crate) rounds: usize,
    /// Messages one by one, in each round.
    messages: usize,
    /// Turns with some in flight, in each round.
    turns: usize,
    /// Chats that speak at once.
    crowds: &'static [usize],
}

pub(crate) const FULL: Effort = Effort {
    rounds: 5,
    messages: 200,
    turns: 1000,
    crowds: &[500, 2000, 5000],
};

/// For a look at whether everything works.
pub(crate) const QUICK: Effort = Effort {
    rounds: 1,
    messages: 30,
    turns: 200,
    crowds: &[100, 500],
};

pub(crate) async fn compare(program: &Path, effort: &Effort) -> Vec<Comparison> {
    let contenders = [
        Contender::Parlor(program.to_owned()),
        Contender::DurableFloor,
        Contender::BareFloor,
    ];
    let mut measured: [Measured; 3] = std::array::from_fn(|_| Measured::new(effort));
    for round in 1..=effort.rounds {
        for (contender, measured) in contenders.iter().zip(&mut measured) {
            measured.turns(contender, effort).await;
        }
        for (index, chats) in effort.crowds.iter().enumerate() {
            for (contender, measured) in contenders.iter().zip(&mut measured) {
                measured.crowds[index].measure(contender, *chats).await;
            }
        }
        measured[0].many_agents(&contenders[0]).await;
        println!("round {round} of {} is through", effort.rounds);
    }
    comparisons(&measured, effort)
}

/// One contender's samples of all rounds.
struct Measured {
    /// Milliseconds.
    first_poll_on_new_home: Vec<f64>,
    first_poll: Vec<f64>,
    overhead: Vec<f64>,
    /// Milliseconds of a turn.
    processor: Vec<f64>,
    busy_processor: Vec<f64>,
    turns_per_second: Vec<f64>,
    /// Mebibytes.
    idle: Vec<f64>,
    idle_with_many_agents: Vec<f64>,
    crowds: Vec<Crowd>,
}

#[derive(Default)]
struct Crowd {
    seconds: Vec<f64>,
    peak_mebibytes: Vec<f64>,
}

impl Measured {
    fn new(effort: &Effort) -> Self {
        Measured {
            first_poll_on_new_home: Vec::new(),
            first_poll: Vec::new(),
            overhead: Vec::new(),
            processor: Vec::new(),
            busy_processor: Vec::new(),
            turns_per_second: Vec::new(),
            idle: Vec::new(),
            idle_with_many_agents: Vec::new(),
            crowds: effort.crowds.iter().map(|_| Crowd::default()).collect(),
        }
    }

    /// A first start, a second one, messages one by one, and turns with some in flight.
    async fn turns(&mut self, contender: &Contender, effort: &Effort) {
        let scene = Scene::of(contender.clone(), Size::topics(TURN_TOPICS)).await;
        let first = scene.start().await;
        self.first_poll_on_new_home
            .push(milliseconds(first.first_poll_after));
        first.stop().await;
        let gateway = scene.start().await;
        self.first_poll.push(milliseconds(gateway.first_poll_after));
        self.idle
            .push(mebibytes(gateway.settled_memory().await.resident_bytes));
        self.one_by_one(&scene, &gateway, effort.messages).await;
        self.in_flight(&scene, &gateway, effort.turns).await;
        gateway.stop().await;
        scene.check_answers(WARM_UP + effort.messages + effort.turns);
    }

    async fn one_by_one(&mut self, scene: &Scene, gateway: &Gateway, messages: usize) {
        scene.exchange(WARM_UP).await;
        let before = gateway.processor_seconds();
        scene.exchange(messages).await;
        let processor = gateway.processor_seconds() - before;
        self.processor.push(processor * 1000.0 / messages as f64);
        self.overhead.extend(scene.overhead().skip(WARM_UP));
    }

    async fn in_flight(&mut self, scene: &Scene, gateway: &Gateway, turns: usize) {
        let already = scene.telegram.sent().len();
        let (before, began) = (gateway.processor_seconds(), Instant::now());
        for number in 0..turns {
            if let Some(over) = number.checked_sub(IN_FLIGHT) {
                scene.telegram.wait_for_sent(already + over + 1).await;
            }
            scene.say_in(number % TURN_TOPICS, PLAIN).await;
        }
        scene.telegram.wait_for_sent(already + turns).await;
        let seconds = began.elapsed().as_secs_f64();
        let processor = gateway.processor_seconds() - before;
        self.turns_per_second.push(turns as f64 / seconds);
        self.busy_processor.push(processor * 1000.0 / turns as f64);
    }

    async fn many_agents(&mut self, contender: &Contender) {
        let size = Size {
            agents: MANY_AGENTS,
            ..Size::topics(1)
        };
        let scene = Scene::of(contender.clone(), size).await;
        scene.start().await.stop().await;
        let gateway = scene.start().await;
        self.idle_with_many_agents
            .push(mebibytes(gateway.settled_memory().await.resident_bytes));
        gateway.stop().await;
    }
}

impl Crowd {
    /// All speak at once, and the model takes a second. One turn goes ahead, so that connections
    /// and files have been used.
    async fn measure(&mut self, contender: &Contender, chats: usize) {
        let scene = Scene::of(contender.clone(), Size::topics(chats)).await;
        let gateway = scene.start().await;
        scene.exchange(1).await;
        scene.model.delay(CROWD_MODEL);
        let began = Instant::now();
        for chat in 0..chats {
            scene.say_in(chat, PLAIN).await;
        }
        // The fake's patience is for one wait, and a slow machine needs several.
        for answers in (0..=chats).step_by(AT_A_TIME) {
            scene.telegram.wait_for_sent(answers + 1).await;
        }
        scene.telegram.wait_for_sent(chats + 1).await;
        let sends = scene.telegram.calls("sendMessage");
        let last = sends.last().expect("messages were sent").at;
        self.seconds.push((last - began).as_secs_f64());
        self.peak_mebibytes
            .push(mebibytes(gateway.peak_memory_bytes()));
        gateway.stop().await;
        scene.check_answers(chats + 1);
    }
}

impl Scene {
    /// So many messages and their answers, one at a time.
    pub(crate) async fn exchange(&self, messages: usize) {
        if let Some(server) = &self.server {
            return server.exchange(messages).await;
        }
        let already = self.telegram.sent().len();
        for number in 0..messages {
            self.say_in(number % super::AGENTS.min(self.topic_count()), PLAIN)
                .await;
            self.telegram.wait_for_sent(already + number + 1).await;
            self.telegram.all_confirmed().await;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Milliseconds that the gateway added to each message so far, if all came one at a time.
    pub(crate) fn overhead(&self) -> impl Iterator<Item = f64> {
        let (inward, outward) = self.overheads();
        inward
            .into_iter()
            .zip(outward)
            .map(|(inward, outward)| inward + outward)
    }
}

fn comparisons(measured: &[Measured; 3], effort: &Effort) -> Vec<Comparison> {
    let all = |what: fn(&Measured) -> f64| measured.each_ref().map(what);
    let row = |key: &str, what: &str, unit, goal, values| {
        Comparison::new(key.to_owned(), what.to_owned(), unit, goal, values)
    };
    let mut rows = vec![
        row(
            "overhead",
            "added to a message",
            Unit::Milliseconds,
            Goal::Times(1.6),
            all(|of| median(&of.overhead)),
        ),
        row(
            "overhead_p99",
            "  the same, p99",
            Unit::Milliseconds,
            Goal::Times(2.0),
            all(|of| percentile(&of.overhead, 99)),
        ),
        row(
            "processor",
            "processor of a turn, one by one",
            Unit::Milliseconds,
            Goal::Times(2.0),
            all(|of| median(&of.processor)),
        ),
        row(
            "busy_processor",
            "processor of a turn, 8 in flight",
            Unit::Milliseconds,
            Goal::Times(2.0),
            all(|of| median(&of.busy_processor)),
        ),
        row(
            "turns_per_second",
            "turns in a second, 8 in flight",
            Unit::Count,
            Goal::TimesAtLeast(0.9),
            all(|of| median(&of.turns_per_second)),
        ),
    ];
    for (index, chats) in effort.crowds.iter().enumerate() {
        rows.extend(crowd_rows(measured, index, *chats));
    }
    rows.extend([
        row(
            "idle",
            "memory when idle, 10 agents",
            Unit::Mebibytes,
            Goal::Most(15.0),
            all(|of| median(&of.idle)),
        ),
        Comparison::alone(
            "idle_many_agents",
            "memory when idle, 1,000 agents",
            Unit::Mebibytes,
            Goal::Most(18.0),
            median(&measured[0].idle_with_many_agents),
        ),
        row(
            "first_poll",
            "first poll, existing home",
            Unit::Milliseconds,
            Goal::Most(15.0),
            all(|of| median(&of.first_poll)),
        ),
        row(
            "first_poll_new_home",
            "first poll, new home",
            Unit::Milliseconds,
            Goal::Most(25.0),
            all(|of| median(&of.first_poll_on_new_home)),
        ),
    ]);
    rows
}

fn crowd_rows(measured: &[Measured; 3], index: usize, chats: usize) -> [Comparison; 2] {
    let all = |what: fn(&Crowd) -> &Vec<f64>| {
        measured
            .each_ref()
            .map(|of| median(what(&of.crowds[index])))
    };
    [
        Comparison::new(
            format!("crowd_{chats}"),
            format!("{chats} chats at once, model takes 1 s"),
            Unit::Seconds,
            Goal::Times(1.15),
            all(|crowd| &crowd.seconds),
        ),
        Comparison::new(
            format!("crowd_{chats}_memory"),
            "  most memory meanwhile".to_owned(),
            Unit::Mebibytes,
            Goal::Times(1.5),
            all(|crowd| &crowd.peak_mebibytes),
        ),
    ]
}
