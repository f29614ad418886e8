//! `parlor config check`: everything that is wrong with config.toml, at once.

use super::Outcome;
use crate::config::Secrets;
use crate::gateway::{Home, Plan};

pub(super) fn run(home: &Home) -> Outcome {
    let plan = Plan::load(home, Secrets::WherePresent)?;
    let (agents, bindings) = (plan.config.agents.len(), plan.config.bindings.len());
    println!("config.toml is fine: {agents} agents, {bindings} bindings.");
    Ok(())
}
