//! `/usage`: tokens and costs.

use axum::Json;
use axum::extract::State;
use chrono::NaiveDate;
use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::common::house;
use super::extract::ApiQuery;
use crate::admin::auth::Reads;
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::clock::now_ms;
use crate::domain::AgentId;
use crate::operations::budgets;
use crate::operations::house::House;
use crate::operations::named::Named;
use crate::records::ledger::{self, By, Period, UsageLine};

pub(super) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new().routes(routes!(usage))
}

/// Since when, and by what.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct UsageQuery {
    /// today, 7d or 30d; without it, today.
    period: Option<String>,
    /// A day such as 2026-11-01, instead of a period.
    since: Option<String>,
    /// agent, place, person or model; without it, agent.
    by: Option<String>,
}

/// Numbers of somebody or something.
#[derive(Debug, Serialize, ToSchema)]
struct SpentLine {
    #[serde(flatten)]
    of: Named,
    turns: u64,
    input_tokens: u64,
    /// Part of the input.
    cached_tokens: u64,
    output_tokens: u64,
    /// Millionths of the currency; null where no price is known.
    cost_micros: Option<u64>,
    /// Tokens of models without a price, which the cost leaves out.
    unpriced_tokens: u64,
}

/// Spending since a day.
#[derive(Debug, Serialize, ToSchema)]
struct Usage {
    since: String,
    by: String,
    currency: String,
    items: Vec<SpentLine>,
    /// Limits of the house and of agents, with what is spent of them.
    #[schema(value_type = Vec<Object>)]
    limits: Value,
}

/// Tokens and costs, the most expensive first.
#[utoipa::path(get, path = "/usage", tag = "usage", params(UsageQuery), responses((status = 200, body = Usage)))]
async fn usage(
    _: Reads,
    State(state): State<AdminState>,
    ApiQuery(query): ApiQuery<UsageQuery>,
) -> Result<Json<Usage>, Problem> {
    let since = first_day(&query)?;
    let by = query.by.as_deref().unwrap_or("agent");
    let by = By::ALL.into_iter().find(|known| known.as_str() == by);
    let by = by.ok_or_else(|| Problem::bad_request("by is agent, place, person or model"))?;
    let house = house(&state).await?;
    let config = house.config.clone();
    let read = move |connection: &Connection| {
        Ok((
            ledger::report_since(connection, by, since, None)?,
            budgets::of_house(connection, &config, now_ms())?,
        ))
    };
    let (lines, limits) = state.operations.db().read(read).await?;
    Ok(Json(Usage {
        since: since.to_string(),
        by: by.as_str().to_owned(),
        currency: house.config.currency.to_string(),
        items: lines.iter().map(|spent| line(&house, by, spent)).collect(),
        limits: serde_json::to_value(limits).map_err(|_| Problem::broken())?,
    }))
}

fn first_day(query: &UsageQuery) -> Result<NaiveDate, Problem> {
    match (&query.since, query.period.as_deref().unwrap_or("today")) {
        (Some(day), _) => day
            .parse()
            .map_err(|_| Problem::bad_request("since is a day such as 2026-11-01")),
        (None, word) => {
            let period = Period::ALL
                .into_iter()
                .find(|period| period.as_str() == word);
            let period =
                period.ok_or_else(|| Problem::bad_request("period is today, 7d or 30d"))?;
            Ok(period.first_day(now_ms()))
        }
    }
}

fn line(house: &House, by: By, spent: &UsageLine) -> SpentLine {
    let text = spent.name.as_str();
    let named = match by {
        By::Agent => AgentId::parse(text).ok().map(|id| house.agent(&id)),
        By::Place => text.parse().ok().map(|key| house.names.place(&key)),
        By::Person => text.parse().ok().map(|id| house.names.person(&id)),
        By::Model => None,
    };
    SpentLine {
        of: named.unwrap_or_else(|| Named::new(text, None)),
        turns: spent.turns,
        input_tokens: spent.usage.input_tokens,
        cached_tokens: spent.usage.cached_tokens,
        output_tokens: spent.usage.output_tokens,
        cost_micros: spent.cost.map(|cost| cost.0),
        unpriced_tokens: spent.unpriced_tokens,
    }
}
