//! The numbers as OpenMetrics text.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, MetricEncoder, NoLabelSet, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::agents::{AgentCounts, RULES, Stage, TurnOutcome, by_label};
use super::histogram::Seen;
use super::{ByPlatform, Counter, PROCESS, Reloaded, StoreCall};
use crate::domain::Platform;

/// Numbers of this moment, asked for with each look.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gauges {
    pub(crate) version: &'static str,
    pub(crate) uptime: Duration,
    /// Turns under way.
    pub(crate) turns: usize,
    /// Messages in lanes, waiting for their turn.
    pub(crate) waiting: usize,
    /// The age of the oldest of them.
    pub(crate) oldest: Duration,
    /// Calls of tools that wait for a person's yes or no.
    pub(crate) approvals: u64,
    /// Rows of the outbox by state. None where the store did not say in time.
    pub(crate) outbox: Option<BTreeMap<String, u64>>,
    /// Whether the newest call worked, by platform.
    pub(crate) platforms: Vec<(Platform, bool)>,
    pub(crate) store_answers: bool,
}

/// All numbers, for a reader that speaks OpenMetrics.
pub(crate) fn render(gauges: Gauges) -> String {
    let mut registry = Registry::with_prefix("parlor");
    registry.register_collector(Box::new(Numbers {
        gauges,
        agents: by_label(),
    }));
    let mut shown = String::new();
    // A string takes all that is written.
    let _ = text::encode(&mut shown, &registry);
    shown
}

/// The media type of the text.
pub(crate) const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Debug)]
struct Numbers {
    gauges: Gauges,
    agents: Vec<(String, Vec<Arc<AgentCounts>>)>,
}

type Encoded = Result<(), fmt::Error>;

impl Collector for Numbers {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Encoded {
        let mut page = Page(encoder);
        self.of_process(&mut page)?;
        self.of_agents(&mut page)?;
        self.of_moment(&mut page)
    }
}

impl Numbers {
    fn of_process(&self, page: &mut Page<'_>) -> Encoded {
        page.by_platform("received", "Messages that were stored", &PROCESS.received)?;
        page.by_platform(
            "rate_limited",
            "Calls that the platform answered with a wait, such as status 429",
            &PROCESS.waits,
        )?;
        let reloads = Reloaded::ALL.map(|end| {
            let count = PROCESS.reloads[end as usize].get();
            ([("outcome", end.as_str())], count)
        });
        page.counters("reloads", "Config files read anew, by outcome", reloads)?;
        page.counter("panics", "Panics that were caught", &PROCESS.panics)?;
        page.counter(
            "log_lines_dropped",
            "Lines of the log without room, because nobody read them",
            &PROCESS.dropped_lines,
        )?;
        let store = StoreCall::ALL.map(|call| {
            let seen = PROCESS.store[call as usize].seen();
            ([("call", call.as_str())], seen)
        });
        page.histograms(
            "store_seconds",
            "Time until the database answered, with the wait in its queue",
            store,
        )
    }

    fn of_agents(&self, page: &mut Page<'_>) -> Encoded {
        let routed = self.each(|agent, all| {
            RULES.iter().enumerate().map(move |(at, rule)| {
                let labels = [("agent", agent), ("rule", *rule)];
                (labels, sum(all, |counts| &counts.routed[at]))
            })
        });
        page.counters(
            "routed",
            "Messages given to an agent, by the kind of rule",
            routed,
        )?;
        let turns = self.each(|agent, all| {
            TurnOutcome::ALL.into_iter().map(move |outcome| {
                let labels = [("agent", agent), ("outcome", outcome.as_str())];
                (labels, sum(all, |counts| &counts.turns[outcome as usize]))
            })
        });
        page.counters("turns", "Turns by outcome, those of subagents too", turns)?;
        let tokens = self.each(|agent, all| {
            let input = (
                [("agent", agent), ("kind", "input")],
                sum(all, |counts| &counts.input_tokens),
            );
            let output = (
                [("agent", agent), ("kind", "output")],
                sum(all, |counts| &counts.output_tokens),
            );
            [input, output]
        });
        page.counters("tokens", "Tokens that models read and wrote", tokens)?;
        let cost = self.each(|agent, all| {
            [(
                [("agent", agent)],
                millionths(sum(all, |counts| &counts.cost)),
            )]
        });
        page.counters(
            "cost",
            "Cost of models with a price, in the currency of the config",
            cost,
        )?;
        let tools =
            self.each(|agent, all| [([("agent", agent)], sum(all, |counts| &counts.tool_calls))]);
        page.counters("tool_calls", "Calls of tools", tools)?;
        let subagents =
            self.each(|agent, all| [([("agent", agent)], sum(all, |counts| &counts.subagents))]);
        page.counters(
            "subagents",
            "Turns that another turn asked for, by the agent that did the work",
            subagents,
        )?;
        let stages = self.each(|agent, all| {
            Stage::ALL.into_iter().map(move |stage| {
                let mut seen = Seen::default();
                all.iter()
                    .for_each(|counts| seen.add(&counts.stages[stage as usize].seen()));
                ([("agent", agent), ("stage", stage.as_str())], seen)
            })
        });
        page.histograms(
            "stage_seconds",
            "Time of messages in each stage: stored, queued, slot, model, tools, written, sent",
            stages,
        )
    }

    fn of_moment(&self, page: &mut Page<'_>) -> Encoded {
        let Gauges {
            version,
            uptime,
            turns,
            waiting,
            oldest,
            approvals,
            outbox,
            platforms,
            store_answers,
        } = &self.gauges;
        page.gauges(
            "build",
            "The running version",
            [([("version", *version)], 1.0)],
        )?;
        page.gauge(
            "uptime_seconds",
            "Time since the start",
            uptime.as_secs_f64(),
        )?;
        page.gauge("turns_running", "Turns under way", float(*turns))?;
        page.gauge(
            "queue_messages",
            "Messages that wait for their turn",
            float(*waiting),
        )?;
        page.gauge(
            "queue_age_seconds",
            "Age of the oldest message that waits for its turn",
            oldest.as_secs_f64(),
        )?;
        page.gauge(
            "approvals_open",
            "Calls of tools that wait for a person's yes or no",
            float(usize::try_from(*approvals).unwrap_or(usize::MAX)),
        )?;
        let rows = outbox.iter().flatten().map(|(state, rows)| {
            (
                [("state", state.as_str())],
                float(usize::try_from(*rows).unwrap_or(usize::MAX)),
            )
        });
        page.gauges(
            "outbox_rows",
            "Rows of the outbox by state; none where the database did not answer in time",
            rows,
        )?;
        let up = platforms.iter().map(|(platform, answers)| {
            (
                [("platform", platform.as_str())],
                f64::from(u8::from(*answers)),
            )
        });
        page.gauges(
            "platform_up",
            "Whether the newest call to the platform worked",
            up,
        )?;
        page.gauge(
            "store_up",
            "Whether the database answers",
            f64::from(u8::from(*store_answers)),
        )
    }

    /// The rows of all agents.
    fn each<'a, I: IntoIterator>(
        &'a self,
        rows: impl Fn(&'a str, &'a [Arc<AgentCounts>]) -> I,
    ) -> Vec<I::Item> {
        let agents = self.agents.iter();
        agents.flat_map(|(label, all)| rows(label, all)).collect()
    }
}

fn sum(all: &[Arc<AgentCounts>], counter: impl Fn(&AgentCounts) -> &Counter) -> u64 {
    all.iter().map(|counts| counter(counts).get()).sum()
}

fn millionths(number: u64) -> f64 {
    number as f64 / 1e6
}

fn float(number: usize) -> f64 {
    number as f64
}

/// Writes families of numbers.
struct Page<'a>(DescriptorEncoder<'a>);

impl Page<'_> {
    fn by_platform(&mut self, name: &str, help: &str, counts: &ByPlatform) -> Encoded {
        let rows = Platform::ALL
            .map(|platform| ([("platform", platform.as_str())], counts.of(platform).get()));
        self.counters(name, help, rows)
    }

    fn counter(&mut self, name: &str, help: &str, counter: &Counter) -> Encoded {
        let mut family = self
            .0
            .encode_descriptor(name, help, None, MetricType::Counter)?;
        family.encode_counter::<NoLabelSet, u64, f64>(&counter.get(), None)
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) -> Encoded {
        let mut family = self
            .0
            .encode_descriptor(name, help, None, MetricType::Gauge)?;
        family.encode_gauge(&value)
    }

    fn counters<L: EncodeLabelSet, V: prometheus_client::encoding::EncodeCounterValue>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = (L, V)>,
    ) -> Encoded {
        self.family(name, help, MetricType::Counter, rows, |encoder, value| {
            encoder.encode_counter::<NoLabelSet, V, f64>(value, None)
        })
    }

    fn gauges<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = (L, f64)>,
    ) -> Encoded {
        self.family(name, help, MetricType::Gauge, rows, |encoder, value| {
            encoder.encode_gauge(value)
        })
    }

    fn histograms<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = (L, Seen)>,
    ) -> Encoded {
        self.family(name, help, MetricType::Histogram, rows, |encoder, seen| {
            encoder.encode_histogram::<NoLabelSet>(
                seen.seconds(),
                seen.count(),
                &seen.buckets(),
                None,
            )
        })
    }

    fn family<L: EncodeLabelSet, V>(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        rows: impl IntoIterator<Item = (L, V)>,
        value: impl Fn(&mut MetricEncoder<'_>, &V) -> Encoded,
    ) -> Encoded {
        let mut family = self.0.encode_descriptor(name, help, None, kind)?;
        for (labels, row) in rows {
            value(&mut family.encode_family(&labels)?, &row)?;
        }
        Ok(())
    }
}
