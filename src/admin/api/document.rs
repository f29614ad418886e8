//! The OpenAPI document, made from the code. Answers that every call has are added here.

use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ContentBuilder, OpenApi, Ref, RefOr, Response, ResponseBuilder};

use super::super::texts;

/// Adds what all calls have in common.
pub(super) fn completed(mut document: OpenApi) -> OpenApi {
    document.info.title = "Parlor".to_owned();
    document.info.version = "1".to_owned();
    document.info.description = Some(texts::ABOUT_API.to_owned());
    document.info.license = None;
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    let components = document.components.get_or_insert_default();
    components.add_security_scheme("token", bearer);
    document.security = Some(vec![SecurityRequirement::new(
        "token",
        Vec::<String>::new(),
    )]);
    for item in document.paths.paths.values_mut() {
        for operation in operations(item) {
            complete(operation);
        }
    }
    document
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [
        item.get.as_mut(),
        item.put.as_mut(),
        item.post.as_mut(),
        item.patch.as_mut(),
        item.delete.as_mut(),
    ]
    .into_iter()
    .flatten()
}

fn complete(operation: &mut Operation) {
    let mut statuses = vec!["401", "403", "429"];
    let has_parameters = operation
        .parameters
        .as_ref()
        .is_some_and(|all| !all.is_empty());
    let has_body = operation.request_body.is_some();
    if has_parameters || has_body {
        statuses.push("400");
    }
    if has_body {
        statuses.extend(["413", "415"]);
    }
    for status in statuses {
        let known = &mut operation.responses.responses;
        known
            .entry(status.to_owned())
            .or_insert_with(|| RefOr::T(problem(status)));
    }
}

fn problem(status: &str) -> Response {
    let schema = RefOr::Ref(Ref::from_schema_name("Problem"));
    let content = ContentBuilder::new().schema(Some(schema)).build();
    let about = match status {
        "400" => "Something in the call cannot be read or is out of range",
        "401" => "No token or cookie, or one that does not count",
        "403" => "The scope is not enough, or the call comes from elsewhere",
        "413" => "The body is too large",
        "415" => "The body is not JSON",
        _ => "Too many wrong tokens within a minute",
    };
    ResponseBuilder::new()
        .description(about)
        .content("application/problem+json", content)
        .build()
}
