//! Streams of every dialect, as servers send them.

use serde_json::{Value, json};

use super::reading::Reading;
use crate::config::ProviderKind;
use crate::models::{Cut, ModelError, ModelEvent, Usage};

/// All that a stream came to.
#[derive(Debug, Clone, PartialEq)]
struct Came {
    text: String,
    worked: bool,
    end: Result<End, ModelError>,
    thoughts: usize,
}

#[derive(Debug, Clone, PartialEq)]
struct End {
    /// Name, arguments, and the id if it is the server's.
    calls: Vec<(String, Value, String)>,
    usage: Usage,
    cut: Option<Cut>,
}

fn came(kind: ProviderKind, pieces: &[&[u8]]) -> Came {
    let mut reading = Reading::new(kind);
    let (mut text, mut worked) = (String::new(), false);
    let mut hear = |reading: &mut Reading| {
        while let Some(event) = reading.next_event() {
            match event {
                ModelEvent::Text(piece) => text.push_str(&piece),
                ModelEvent::Working => worked = true,
                ModelEvent::Done { .. } => panic!("the end comes apart"),
            }
        }
    };
    let mut read = || {
        for piece in pieces {
            reading.take(piece)?;
            hear(&mut reading);
            if reading.is_complete() {
                return Ok(());
            }
        }
        reading.take_end()
    };
    let read: Result<(), ModelError> = read();
    let end = read.and_then(|()| reading.finish(None));
    reading.tell_rest();
    hear(&mut reading);
    let thoughts = end.as_ref().map_or(0, |(_, thoughts)| thoughts.len());
    Came {
        text,
        worked,
        end: end.map(|(done, _)| whole(done)),
        thoughts,
    }
}

fn whole(done: ModelEvent) -> End {
    let ModelEvent::Done {
        tool_calls,
        usage,
        cut,
    } = done
    else {
        panic!("an answer ends with `Done`")
    };
    let is_made = |id: &str| id.len() > 16 && (id.starts_with("call_") || id.starts_with("call#"));
    let calls = tool_calls.into_iter().map(|call| {
        let id = if is_made(&call.id) {
            "made".to_owned()
        } else {
            call.id
        };
        (call.name, call.arguments, id)
    });
    End {
        calls: calls.collect(),
        usage,
        cut,
    }
}

fn call(name: &str, arguments: Value, id: &str) -> (String, Value, String) {
    (name.to_owned(), arguments, id.to_owned())
}

fn done(calls: Vec<(String, Value, String)>) -> Result<End, ModelError> {
    Ok(End {
        calls,
        usage: Usage::default(),
        cut: None,
    })
}

/// Server-sent events without names.
fn sse(events: &[Value]) -> String {
    events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect()
}

fn deltas(deltas: &[Value], reason: &str) -> String {
    let chunk =
        |delta: &Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
    let last = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]});
    sse(&deltas.iter().map(chunk).chain([last]).collect::<Vec<_>>()) + "data: [DONE]\n\n"
}

fn calls_of(deltas_with_calls: &[Value]) -> Result<End, ModelError> {
    let with_calls: Vec<Value> = deltas_with_calls
        .iter()
        .map(|calls| json!({"tool_calls": calls}))
        .collect();
    came(
        ProviderKind::OpenAi,
        &[deltas(&with_calls, "tool_calls").as_bytes()],
    )
    .end
}

/// A long answer of each dialect: a thought, text with letters of several bytes, two calls, usage.
fn recordings() -> [(ProviderKind, String); 5] {
    let chat = ": keep-alive\r\n\r\n".to_owned()
        + &deltas(
            &[
                json!({"role": "assistant", "content": ""}),
                json!({"reasoning_content": "hm, “é”"}),
                json!({"content": "Grüße, "}),
                json!({"content": "日本 🌹"}),
                json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "now", "arguments": ""}}]}),
                json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"zone\":"}}]}),
                json!({"tool_calls": [{"index": 0, "function": {"arguments": "\"Zürich\"}"}}]}),
                json!({"tool_calls": [{"index": 1, "id": "b", "function": {"name": "now", "arguments": "{}"}}]}),
            ],
            "tool_calls",
        )
        .replace("data: [DONE]", "data: {\"choices\":[],\ndata: \"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4,\"prompt_tokens_details\":{\"cached_tokens\":5}}}\n\ndata: [DONE]");
    let usage = json!({"input_tokens": 9, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 5}});
    let item = |id: &str, arguments: &str| json!({"type": "function_call", "call_id": id, "name": "now", "arguments": arguments});
    let responses = sse(&[
        json!({"type": "response.created", "response": {"status": "in_progress", "output": []}}),
        json!({"type": "response.reasoning_summary_text.delta", "delta": "hm, “é”"}),
        json!({"type": "response.output_text.delta", "output_index": 1, "delta": "Grüße, "}),
        json!({"type": "response.output_text.delta", "output_index": 1, "delta": "日本 🌹"}),
        json!({"type": "response.output_item.added", "output_index": 2, "item": item("a", "")}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "{\"zone\":"}),
        json!({"type": "response.output_item.done", "output_index": 2, "item": item("a", "{\"zone\":\"Zürich\"}")}),
        json!({"type": "response.output_item.done", "output_index": 3, "item": item("b", "{}")}),
        json!({"type": "response.completed", "response": {"status": "completed", "output": [item("c", "{}")], "usage": usage}}),
    ]);
    let anthropic: String = [
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 4, "cache_read_input_tokens": 5, "output_tokens": 1}}}),
        json!({"type": "ping"}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm, “é”"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "signed"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "secret"}}),
        json!({"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "Grüße, 日本 🌹"}}),
        json!({"type": "content_block_start", "index": 3, "content_block": {"type": "tool_use", "id": "a", "name": "now", "input": {}}}),
        json!({"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": "{\"zone\":"}}),
        json!({"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": "\"Zürich\"}"}}),
        json!({"type": "content_block_start", "index": 4, "content_block": {"type": "tool_use", "id": "b", "name": "now", "input": {}}}),
        json!({"type": "content_block_stop", "index": 4}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 4}}),
        json!({"type": "message_stop"}),
    ]
    .iter()
    .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default()))
    .collect();
    let part =
        |part: Value| json!({"candidates": [{"content": {"role": "model", "parts": [part]}}]});
    let counts = json!({"promptTokenCount": 9, "candidatesTokenCount": 3, "thoughtsTokenCount": 1, "cachedContentTokenCount": 5});
    let gemini = sse(&[
        part(json!({"text": "hm, “é”", "thought": true})),
        part(json!({"text": "Grüße, 日本 🌹"})),
        part(json!({"functionCall": {"id": "a", "name": "now", "args": {"zone": "Zürich"}}, "thoughtSignature": "x"})),
        part(json!({"functionCall": {"id": "b", "name": "now"}})),
        json!({"candidates": [{"finishReason": "STOP"}], "usageMetadata": counts}),
    ])
    .replace('\n', "\r\n");
    let line = |message: Value| format!("{}\n", json!({"message": message, "done": false}));
    let called = |id: &str, arguments: Value| json!({"id": id, "function": {"name": "now", "arguments": arguments}});
    let ollama = line(json!({"role": "assistant", "content": "", "thinking": "hm, “é”"}))
        + &line(json!({"role": "assistant", "content": "Grüße, 日本 🌹"}))
        + &line(json!({"content": "", "tool_calls": [called("a", json!({"zone": "Zürich"})), called("b", json!(null))]}))
        + &json!({"message": {"content": ""}, "done": true, "done_reason": "stop", "prompt_eval_count": 9, "prompt_eval_cached_count": 5, "eval_count": 4}).to_string();
    [
        (ProviderKind::OpenAi, chat),
        (ProviderKind::OpenAiResponses, responses),
        (ProviderKind::Anthropic, anthropic),
        (ProviderKind::Gemini, gemini),
        (ProviderKind::Ollama, ollama),
    ]
}

#[test]
fn answers_are_the_same_wherever_the_network_cuts_them() {
    for (kind, recording) in recordings() {
        let bytes = recording.as_bytes();
        let calls = vec![
            call("now", json!({"zone": "Zürich"}), "a"),
            call("now", json!({}), "b"),
        ];
        let usage = Usage {
            input_tokens: 9,
            output_tokens: 4,
            cached_tokens: 5,
        };
        let expected = Came {
            text: "Grüße, 日本 🌹".to_owned(),
            worked: true,
            end: Ok(End {
                calls,
                usage,
                cut: None,
            }),
            thoughts: if kind == ProviderKind::Anthropic {
                2
            } else {
                0
            },
        };
        assert_eq!(came(kind, &[bytes]), expected, "{kind:?}");
        for cut in 0..bytes.len() {
            assert_eq!(
                came(kind, &[&bytes[..cut], &bytes[cut..]]),
                expected,
                "{kind:?} cut at {cut}"
            );
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(came(kind, &single), expected, "{kind:?} byte by byte");
    }
}

/// Every beginning of an answer is a beginning of its text, and never a whole answer with another
/// end.
#[test]
fn answers_that_just_stop_are_cut_off() {
    for (kind, recording) in recordings() {
        let bytes = recording.as_bytes();
        let whole = came(kind, &[bytes]);
        for cut in 0..bytes.len() {
            let part = came(kind, &[&bytes[..cut]]);
            assert!(
                whole.text.starts_with(&part.text),
                "{kind:?} stopped at {cut}"
            );
            match part.end {
                Ok(end) => assert_eq!(
                    Some(end.calls),
                    whole.end.clone().ok().map(|end| end.calls),
                    "{kind:?} at {cut}"
                ),
                Err(error) => assert_eq!(error, ModelError::CutOff, "{kind:?} stopped at {cut}"),
            }
        }
    }
}

#[test]
fn pieces_of_calls_find_their_call() {
    let piece = |index: u64, id: &str, name: &str, arguments: &str| json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let bare = |id: Value, name: Value, arguments: Value| json!({"id": id, "function": {"name": name, "arguments": arguments}});
    let one = |id: &str| call("one", json!({"a": 1}), id);
    let two = |id: &str| call("two", json!({}), id);

    // Numbers that jump, and pieces that take turns.
    let jumping = [
        json!([
            piece(7, "x", "one", "{\"a\":"),
            piece(4_000_000_000, "y", "two", "{")
        ]),
        json!([piece(7, "", "", "1}")]),
        json!([{"index": 4_000_000_000_u64, "function": {"arguments": "}"}}]),
    ];
    assert_eq!(calls_of(&jumping), done(vec![one("x"), two("y")]));
    // All with the same number.
    assert_eq!(
        calls_of(&[
            json!([piece(0, "x", "one", "{\"a\":1}")]),
            json!([piece(0, "y", "two", "{}")])
        ]),
        done(vec![one("x"), two("y")])
    );
    // A new id with each piece.
    assert_eq!(
        calls_of(&[
            json!([piece(0, "x", "one", "{\"a\":")]),
            json!([piece(0, "z", "", "1}")])
        ]),
        done(vec![one("x")])
    );
    // The name and the id with each piece.
    assert_eq!(
        calls_of(&[
            json!([piece(0, "x", "one", "{\"a\":")]),
            json!([piece(0, "x", "one", "1}")])
        ]),
        done(vec![one("x")])
    );
    // No numbers.
    let unnumbered = [
        json!([bare(json!("x"), json!("one"), json!("{\"a\":"))]),
        json!([bare(json!(null), json!(null), json!("1}"))]),
        json!([bare(json!("y"), json!("two"), json!(""))]),
    ];
    assert_eq!(calls_of(&unnumbered), done(vec![one("x"), two("y")]));
    // Neither numbers nor ids.
    let nameless = [json!([
        bare(json!(null), json!("one"), json!("{\"a\":1}")),
        bare(json!(null), json!("two"), json!(null))
    ])];
    assert_eq!(calls_of(&nameless), done(vec![one("made"), two("made")]));
    // An object in place of text.
    assert_eq!(
        calls_of(&[json!([bare(json!("x"), json!("one"), json!({"a": 1}))])]),
        done(vec![one("x")])
    );
}

#[test]
fn odd_chunks_of_chat_completions_do_no_harm() {
    let odd = ": ping\n\ndata: {\"choices\":[]}\n\ndata: {\"choices\":null,\"usage\":null,\"error\":null}\n\n".to_owned()
        + "data: {\"choices\":[{\"delta\":null}]}\n\ndata: {\"unknown\":[1,{}]}\n\n"
        + "data: {\"choices\":[{\"delta\":{\"content\":null,\"tool_calls\":null,\"role\":7}}]}\n\n"
        + "data: {\"choices\":[{\"delta\":{\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\",\"text\":\"hm\"}]},{\"type\":\"text\",\"text\":\"yes\"}]}}]}\n\n"
        + "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":-2}}";
    let odd = came(ProviderKind::OpenAi, &[odd.as_bytes()]);
    assert_eq!((odd.text.as_str(), odd.worked), ("yes", true));
    let usage = Usage {
        input_tokens: 1,
        ..Usage::default()
    };
    assert_eq!(
        odd.end,
        Ok(End {
            calls: Vec::new(),
            usage,
            cut: Some(Cut::AtTokens(None))
        }),
        "also without [DONE]"
    );
}

#[test]
fn reasons_to_stop_are_told_apart() {
    let filtered = Err(ModelError::Refused(
        "the answer was stopped by the provider's content filter".to_owned(),
    ));
    let cut = |cut: Cut| {
        Ok(End {
            calls: Vec::new(),
            usage: Usage::default(),
            cut: Some(cut),
        })
    };
    let check = |kind, stream: String, expected: Result<End, ModelError>| {
        assert_eq!(
            came(kind, &[stream.as_bytes()]).end,
            expected,
            "{kind:?} {stream}"
        );
    };
    let chat = |reason: &str| deltas(&[], reason);
    check(ProviderKind::OpenAi, chat("stop"), done(Vec::new()));
    check(
        ProviderKind::OpenAi,
        chat("length"),
        cut(Cut::AtTokens(None)),
    );
    check(
        ProviderKind::OpenAi,
        chat("model_length"),
        cut(Cut::WindowFull),
    );
    check(
        ProviderKind::OpenAi,
        chat("content_filter"),
        filtered.clone(),
    );
    check(
        ProviderKind::OpenAi,
        chat("something_new"),
        done(Vec::new()),
    );
    let incomplete = |why: Value| {
        sse(&[json!({"type": "response.incomplete", "response": {"incomplete_details": why}})])
    };
    check(
        ProviderKind::OpenAiResponses,
        incomplete(json!({"reason": "max_output_tokens"})),
        cut(Cut::AtTokens(None)),
    );
    check(
        ProviderKind::OpenAiResponses,
        incomplete(json!(null)),
        cut(Cut::AtTokens(None)),
    );
    check(
        ProviderKind::OpenAiResponses,
        incomplete(json!({"reason": "content_filter"})),
        filtered.clone(),
    );
    let claude = |reason: &str| {
        sse(&[
            json!({"type": "message_delta", "delta": {"stop_reason": reason}}),
            json!({"type": "message_stop"}),
        ])
    };
    check(
        ProviderKind::Anthropic,
        claude("end_turn"),
        done(Vec::new()),
    );
    check(
        ProviderKind::Anthropic,
        claude("max_tokens"),
        cut(Cut::AtTokens(None)),
    );
    check(
        ProviderKind::Anthropic,
        claude("model_context_window_exceeded"),
        cut(Cut::WindowFull),
    );
    check(ProviderKind::Anthropic, claude("refusal"), filtered.clone());
    let gemini = |reason: &str| sse(&[json!({"candidates": [{"finishReason": reason}]})]);
    check(ProviderKind::Gemini, gemini("STOP"), done(Vec::new()));
    check(
        ProviderKind::Gemini,
        gemini("MAX_TOKENS"),
        cut(Cut::AtTokens(None)),
    );
    check(ProviderKind::Gemini, gemini("SAFETY"), filtered);
    let blocked = sse(&[
        json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3}}),
    ]);
    check(
        ProviderKind::Gemini,
        blocked,
        Err(ModelError::Refused(
            "no answer was given to this prompt".to_owned(),
        )),
    );
    let ollama =
        |reason: &str| json!({"message": {}, "done": true, "done_reason": reason}).to_string();
    check(ProviderKind::Ollama, ollama("stop"), done(Vec::new()));
    check(
        ProviderKind::Ollama,
        ollama("length"),
        cut(Cut::AtTokens(None)),
    );
}

#[test]
fn errors_in_a_stream_are_found_in_every_dialect() {
    let check = |kind, stream: &str, expected: ModelError| {
        assert_eq!(
            came(kind, &[stream.as_bytes()]).end,
            Err(expected),
            "{kind:?} {stream}"
        );
    };
    check(
        ProviderKind::OpenAi,
        "data: {\"error\":{\"code\":503}}\n\n",
        ModelError::Overloaded,
    );
    check(
        ProviderKind::OpenAi,
        "error: {\"code\":500,\"message\":\"the context size\"}\n\n",
        ModelError::Broken("the model server failed (500)".into()),
    );
    check(
        ProviderKind::OpenAi,
        "error: {\"message\":\"the context size is exceeded\"}\n\n",
        ModelError::ContextTooLong,
    );
    check(
        ProviderKind::OpenAi,
        "data: not json\n\n",
        ModelError::Broken("the model server's answer could not be read".into()),
    );
    check(
        ProviderKind::OpenAi,
        "data: {\"choices\":",
        ModelError::CutOff,
    );
    check(
        ProviderKind::OpenAi,
        "{\"error\":{\"code\":503}}",
        ModelError::Overloaded,
    );
    let failed = "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"rate_limit_exceeded\"}}}\n\n";
    check(
        ProviderKind::OpenAiResponses,
        failed,
        ModelError::RateLimited { retry_after: None },
    );
    check(
        ProviderKind::OpenAiResponses,
        "data: [DONE]\n\n",
        ModelError::CutOff,
    );
    let unnamed = "event: error\ndata: {\"error\":{\"type\":\"overloaded_error\"}}\n\n";
    check(ProviderKind::Anthropic, unnamed, ModelError::Overloaded);
    check(
        ProviderKind::Gemini,
        "data: {\"error\":{\"code\":429,\"status\":\"RESOURCE_EXHAUSTED\"}}\n\n",
        ModelError::RateLimited { retry_after: None },
    );
    check(
        ProviderKind::Ollama,
        "{\"error\":\"the prompt exceeds the context length\"}\n",
        ModelError::ContextTooLong,
    );
}

#[test]
fn what_comes_only_in_the_last_event_counts_too() {
    let output = json!([
        {"type": "reasoning", "summary": []},
        {"type": "message", "content": [{"type": "output_text", "text": "Good morning."}]},
        {"type": "function_call", "call_id": "a", "name": "now", "arguments": "{}"},
    ]);
    let whole = sse(&[json!({"type": "response.completed", "response": {"output": output}})]);
    let whole = came(ProviderKind::OpenAiResponses, &[whole.as_bytes()]);
    assert_eq!(
        (whole.text.as_str(), whole.end),
        ("Good morning.", done(vec![call("now", json!({}), "a")]))
    );
    let message = json!({"content": "Hello.", "tool_calls": [{"id": "a", "function": {"name": "now", "arguments": "{}"}}]});
    let beside = json!({"choices": [{"delta": {"content": "Hel"}, "message": {"content": "Hel"}}]});
    let last = json!({"choices": [{"delta": {"content": "lo."}, "message": {"content": "Hello."}, "finish_reason": "stop"}]});
    assert_eq!(
        came(ProviderKind::OpenAi, &[sse(&[beside, last]).as_bytes()]).text,
        "Hello."
    );
    let unstreamed =
        json!({"choices": [{"message": message, "finish_reason": "stop"}]}).to_string();
    let unstreamed = came(ProviderKind::OpenAi, &[unstreamed.as_bytes()]);
    assert_eq!(
        (unstreamed.text.as_str(), unstreamed.end),
        ("Hello.", done(vec![call("now", json!({}), "a")]))
    );
    let begun = sse(&[
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hello."}}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "a", "name": "now", "input": {"zone": "UTC"}}}),
        json!({"type": "message_stop"}),
    ]);
    let begun = came(ProviderKind::Anthropic, &[begun.as_bytes()]);
    assert_eq!(
        (begun.text.as_str(), begun.end),
        (
            "Hello.",
            done(vec![call("now", json!({"zone": "UTC"}), "a")])
        )
    );
}

#[test]
fn counts_beyond_sense_are_cut() {
    let usage =
        json!({"prompt_tokens": u64::MAX, "completion_tokens": 3, "prompt_tokens_details": null});
    let stream =
        sse(&[json!({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": usage})]);
    let end = came(ProviderKind::OpenAi, &[stream.as_bytes()])
        .end
        .expect("a whole answer");
    assert_eq!(
        end.usage,
        Usage {
            input_tokens: 1_000_000_000,
            output_tokens: 3,
            cached_tokens: 0
        }
    );
}

#[test]
fn a_refusal_in_words_is_shown() {
    let refused = came(
        ProviderKind::OpenAi,
        &[deltas(&[json!({"refusal": "I cannot help with that."})], "stop").as_bytes()],
    );
    assert_eq!(refused.text, "I cannot help with that.");
}
