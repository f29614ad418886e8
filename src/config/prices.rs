//! Refuses a limit on money for models without a price, because such a limit would never be
//! reached.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::elsewhere;
use super::limits::is_above_zero;
use super::reader::Section;
use super::{AgentSpec, Config, ModelRef, Problem};

/// The sections with limits for all agents.
const FOR_ALL: [&[&str]; 4] = [
    &["limits"],
    &["access", "limits"],
    &["access", "limits", "guest"],
    &["access", "limits", "member"],
];

/// Models without a price, by the limit that needs their prices.
#[derive(Default)]
struct Unpriced<'a>(Vec<(Range<usize>, Vec<&'a ModelRef>)>);

pub(super) fn check(config: &Config, top: &Section<'_>, source: &str) {
    let offered = config.providers.iter().flat_map(|(provider, known)| {
        known.models.iter().map(|model| ModelRef::Of {
            provider: provider.clone(),
            model: model.clone(),
        })
    });
    let offered: Vec<ModelRef> = offered.collect();
    let people = &config.access.limits;
    let counts_for_all = config.budget.has_cost()
        || people.guest.budget.has_cost()
        || people.member.budget.has_cost();
    let for_all = FOR_ALL.iter().find_map(|path| written_limit(top, path));
    let mut unpriced = Unpriced::default();
    for agent in config
        .agents
        .iter()
        .filter(|agent| counts_for_all || agent.limits.budget.has_cost())
    {
        let limit = match counts_for_all {
            true => for_all.clone(),
            false => written_limit(top, &["agents", agent.id.as_str(), "limits"]),
        };
        let limit = limit.or(agent.span.clone()).unwrap_or_default();
        for model in usable(agent, config, &offered) {
            if config.price(model).is_none() && !is_told(model, config, top) {
                unpriced.add(&limit, model);
            }
        }
    }
    for (limit, models) in unpriced.0 {
        top.problems.note(no_prices(limit, &models, top, source));
    }
}

/// The models an agent may use.
fn usable<'a>(
    agent: &'a AgentSpec,
    config: &'a Config,
    offered: &'a [ModelRef],
) -> impl Iterator<Item = &'a ModelRef> {
    let own = agent.model.as_ref().unwrap_or(&config.default_model);
    std::iter::once(own).chain(&agent.fallback).chain(offered)
}

impl<'a> Unpriced<'a> {
    /// A single price is enough for all agents with the model.
    fn add(&mut self, limit: &Range<usize>, model: &'a ModelRef) {
        if self.0.iter().any(|(_, models)| models.contains(&model)) {
            return;
        }
        match self.0.iter_mut().find(|(known, _)| known == limit) {
            Some((_, models)) => models.push(model),
            None => self.0.push((limit.clone(), vec![model])),
        }
    }
}

/// The key of the first limit on money in a section.
fn written_limit(top: &Section<'_>, path: &[&str]) -> Option<Range<usize>> {
    let table = table_at(top, path)?;
    let limit = |key: &str| {
        let (key, value) = table.get_key_value(key)?;
        is_above_zero(value).then(|| key.span())
    };
    ["cost_per_day", "cost_per_month"]
        .into_iter()
        .find_map(limit)
}

/// Whether the provider or its price is broken, which is told there.
fn is_told(model: &ModelRef, config: &Config, top: &Section<'_>) -> bool {
    let ModelRef::Of { provider, model } = model else {
        return false;
    };
    let prices = table_at(top, &["providers", provider])
        .and_then(|provider| provider.get("prices"))
        .map(|prices| prices.get_ref());
    let is_written = prices.is_some_and(|prices| match prices {
        DeValue::Table(prices) => prices.contains_key(model.as_str()) || is_unquoted(model, prices),
        _ => true,
    });
    is_written || !config.providers.contains_key(provider)
}

/// Whether a price is written without quotes around the model's name, which then ends at its first
/// point.
fn is_unquoted(model: &str, prices: &DeTable<'_>) -> bool {
    let Some((first, _)) = model.split_once('.') else {
        return false;
    };
    let table = prices
        .get(first)
        .and_then(|price| price.get_ref().as_table());
    table.is_some_and(|price| !price.contains_key("input"))
}

fn table_at<'a>(top: &Section<'a>, path: &[&str]) -> Option<&'a DeTable<'a>> {
    let (first, rest) = path.split_first()?;
    let mut table = top.value(first)?.get_ref().as_table()?;
    for name in rest {
        table = table.get(*name)?.get_ref().as_table()?;
    }
    Some(table)
}

fn no_prices(
    limit: Range<usize>,
    models: &[&ModelRef],
    top: &Section<'_>,
    source: &str,
) -> Problem {
    let names: Vec<String> = models.iter().map(ToString::to_string).collect();
    let (message, label) = match names.as_slice() {
        [name] => (
            format!("a limit on money needs to know what {name} costs"),
            "agents under this limit may use that model, and the file has no price for it",
        ),
        names => (
            format!(
                "a limit on money needs to know what {} cost",
                names.join(", ")
            ),
            "agents under this limit may use these models, and the file has no price for them",
        ),
    };
    let mut by_provider: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for model in models {
        if let ModelRef::Of { provider, model } = model {
            let line = format!("\"{model}\" = {{ input = 2.5, output = 10 }}");
            by_provider.entry(provider).or_default().push(line);
        }
    }
    let places = by_provider
        .iter()
        .map(|(provider, lines)| price_lines(provider, lines, top, source));
    let places: Vec<String> = places.collect();
    let slips: Vec<String> = models
        .iter()
        .filter_map(|model| priced_instead(model, top))
        .map(|near| format!("did you mean `{near}`? If not, "))
        .collect();
    let costs = match names.len() {
        1 => "it costs",
        _ => "they cost",
    };
    Problem::new(limit, message).label(label).help(format!(
        "{}add what {costs}, in money for a million tokens\n{}",
        slips.concat(),
        places.join("\n")
    ))
}

/// A model of the same provider with a price and almost the same name.
fn priced_instead(model: &ModelRef, top: &Section<'_>) -> Option<String> {
    let ModelRef::Of { provider, model } = model else {
        return None;
    };
    let prices = table_at(top, &["providers", provider, "prices"])?;
    let names = prices.keys().map(|name| &**name.get_ref());
    let near = elsewhere::nearest_slip(model, names)?;
    Some(format!("{provider}/{near}"))
}

/// The lines to add for a provider. The header is a line of its own where the file has none.
fn price_lines(provider: &str, lines: &[String], top: &Section<'_>, source: &str) -> String {
    let header = format!("[providers.{provider}.prices]");
    let prices = table_at(top, &["providers", provider])
        .and_then(|provider| provider.get("prices"))
        .map(|prices| source.get(prices.span().start..).unwrap_or_default());
    match prices {
        Some(text) if text.starts_with('{') => format!(
            "inside the braces of `prices` in [providers.{provider}]\n{}",
            lines.join(", ")
        ),
        Some(_) => format!("below the line `{header}`\n{}", lines.join("\n")),
        None => format!("{header}\n{}", lines.join("\n")),
    }
}
