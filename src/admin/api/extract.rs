//! Extractors whose refusals are problem details.

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::admin::problem::Problem;

/// The body of a call.
pub(super) struct ApiJson<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for ApiJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        match Json::<T>::from_request(request, state).await {
            Ok(Json(body)) => Ok(ApiJson(body)),
            Err(JsonRejection::MissingJsonContentType(_)) => Err(Problem::no_json()),
            Err(JsonRejection::BytesRejection(error)) => Err(Problem::unread(error.status())),
            Err(error) => Err(Problem::bad_request(error.body_text())),
        }
    }
}

/// The part of an address behind `?`.
pub(super) struct ApiQuery<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for ApiQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(head: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = Query::<T>::from_request_parts(head, state).await;
        let told = |error: QueryRejection| Problem::bad_request(error.body_text());
        read.map(|Query(query)| ApiQuery(query)).map_err(told)
    }
}

/// Named parts of a path.
pub(super) struct ApiPath<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for ApiPath<T> {
    type Rejection = Problem;

    async fn from_request_parts(head: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = Path::<T>::from_request_parts(head, state).await;
        let told = |error: PathRejection| Problem::bad_request(error.body_text());
        read.map(|Path(path)| ApiPath(path)).map_err(told)
    }
}
