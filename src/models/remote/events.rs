//! Cuts the body of an answer into events: server-sent events, or lines of JSON. Pure.
//!
//! Crates for server-sent events either bound nothing or read no lines of JSON, so both are read
//! here.

use std::ops::ControlFlow;

use super::bounds::{MAX_EVENT_BYTES, MAX_STREAM_BYTES, within_bytes};
use super::classify::unreadable;
use crate::models::ModelError;

/// An event of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Event {
    /// Empty where the server gives none.
    pub(super) name: String,
    pub(super) data: String,
}

/// How a stream marks the ends of its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// `data: …` lines up to an empty line.
    ServerSent,
    /// A JSON text in each line.
    Lines,
}

/// Bytes of a stream before they are a whole event.
pub(super) struct Events {
    framing: Framing,
    line: Vec<u8>,
    event: Event,
    has_data: bool,
    /// Bytes of the event so far, on the wire.
    event_bytes: usize,
    /// A line feed may follow the carriage return that ended the last line.
    after_return: bool,
    /// Bytes of the stream so far.
    taken: usize,
}

impl Events {
    pub(super) fn new(framing: Framing) -> Self {
        let (line, event) = (Vec::new(), Event::default());
        Events {
            framing,
            line,
            event,
            has_data: false,
            event_bytes: 0,
            after_return: false,
            taken: 0,
        }
    }

    /// Takes in the next bytes and hands on each complete event. After a break nothing is looked at any
    /// more.
    pub(super) fn take(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(Event) -> Result<ControlFlow<()>, ModelError>,
    ) -> Result<(), ModelError> {
        self.taken = self.taken.saturating_add(bytes.len());
        within_bytes(self.taken, MAX_STREAM_BYTES, "in one answer")?;
        let mut rest = bytes;
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_return) && rest.starts_with(b"\n") {
                rest = &rest[1..];
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', rest) else {
                break;
            };
            self.add_to_line(&rest[..end])?;
            self.after_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if let Some(event) = self.end_line()?
                && each(event)?.is_break()
            {
                return Ok(());
            }
        }
        self.add_to_line(rest)
    }

    /// The last event. Some servers leave out the last line end.
    pub(super) fn finish(&mut self) -> Result<Option<Event>, ModelError> {
        if let Some(event) = self.end_line()? {
            return Ok(Some(event));
        }
        Ok(self.end_event())
    }

    fn add_to_line(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        self.event_bytes += bytes.len();
        within_bytes(self.event_bytes, MAX_EVENT_BYTES, "in one event")?;
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) -> Result<Option<Event>, ModelError> {
        let line = std::mem::take(&mut self.line);
        let line = std::str::from_utf8(&line).map_err(|_| unreadable())?;
        // A byte order mark may stand before the first line.
        let line = line.trim_start_matches('\u{feff}');
        if self.framing == Framing::Lines {
            self.event_bytes = 0;
        }
        match self.framing {
            Framing::Lines if line.trim().is_empty() => Ok(None),
            Framing::Lines => Ok(Some(Event {
                name: String::new(),
                data: line.trim().to_owned(),
            })),
            Framing::ServerSent if line.is_empty() => Ok(self.end_event()),
            Framing::ServerSent => {
                self.read_field(line);
                Ok(None)
            }
        }
    }

    fn read_field(&mut self, line: &str) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.trim().clone_into(&mut self.event.name),
            "data" => self.add_data(value),
            // llama.cpp has sent errors in a field of their own.
            "error" => {
                "error".clone_into(&mut self.event.name);
                self.add_data(value);
            }
            // Proxies put errors bare into a stream.
            _ if line.starts_with('{') => self.add_data(line),
            // Comments keep the connection alive; ids and retry times are for browsers.
            _ => {}
        }
    }

    fn add_data(&mut self, value: &str) {
        if std::mem::replace(&mut self.has_data, true) {
            self.event.data.push('\n');
        }
        self.event.data.push_str(value);
    }

    fn end_event(&mut self) -> Option<Event> {
        let event = std::mem::take(&mut self.event);
        self.event_bytes = 0;
        (std::mem::take(&mut self.has_data) && !event.data.trim().is_empty()).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events(framing: Framing, pieces: &[&[u8]]) -> Result<Vec<(String, String)>, ModelError> {
        let mut found = Vec::new();
        let mut events = Events::new(framing);
        for piece in pieces {
            events.take(piece, |event| {
                found.push((event.name, event.data));
                Ok(ControlFlow::Continue(()))
            })?;
        }
        found.extend(events.finish()?.map(|event| (event.name, event.data)));
        Ok(found)
    }

    fn check(stream: &str, expected: &[(&str, &str)]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, data)| ((*name).to_owned(), (*data).to_owned()))
            .collect();
        assert_eq!(
            events(Framing::ServerSent, &[stream.as_bytes()]),
            Ok(expected),
            "{stream:?}"
        );
    }

    #[test]
    fn server_sent_events_are_read_in_all_their_forms() {
        check("data: {}\n\n", &[("", "{}")]);
        check("data:{}\n\n", &[("", "{}")]);
        check("event: ping\ndata: {}\n\n", &[("ping", "{}")]);
        check("data: a\r\n\r\ndata: b\r\n\r\n", &[("", "a"), ("", "b")]);
        check("data: a\r\rdata: b\r\r", &[("", "a"), ("", "b")]);
        check("data: {\ndata:  1}\n\n", &[("", "{\n 1}")]);
        check(
            ": keep-alive\n\nid: 7\nretry: 10\n\ndata: a\n\n",
            &[("", "a")],
        );
        check("\u{feff}data: a\n\n", &[("", "a")]);
        check("event: ping\n\ndata: a\n\n", &[("", "a")]);
        check("data\ndata: \n\n", &[]);
        check("error: {\"code\":500}\n\n", &[("error", "{\"code\":500}")]);
        check("data: [DONE]", &[("", "[DONE]")]);
        check("data: [DONE]\n", &[("", "[DONE]")]);
        check(
            "{\"error\": {\"code\": 503}}\n",
            &[("", "{\"error\": {\"code\": 503}}")],
        );
        check("<html>\n<p>no: such thing\n", &[]);
        check("", &[]);
    }

    #[test]
    fn each_line_of_json_is_an_event() {
        let lines = events(
            Framing::Lines,
            &[b"{\"a\":1}\r\n\n  \n{\"b\":", b"2}\n{\"c\":3}"],
        );
        let expected =
            [r#"{"a":1}"#, r#"{"b":2}"#, r#"{"c":3}"#].map(|line| (String::new(), line.to_owned()));
        assert_eq!(lines, Ok(expected.to_vec()));
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        assert_eq!(
            events(Framing::ServerSent, &[b"data: \xff\n\n"]),
            Err(unreadable())
        );
    }

    #[test]
    fn events_and_streams_have_an_end() {
        let too_long = |pieces: &[&[u8]], framing| {
            events(framing, pieces)
                .map(|events| events.len())
                .map_err(|e| e.to_string())
        };
        let most = "x".repeat(MAX_EVENT_BYTES);
        let message =
            Err("the model server sent more than 4 MB in one event; it was stopped".to_owned());
        assert_eq!(too_long(&[most.as_bytes()], Framing::Lines), Ok(1));
        assert_eq!(
            too_long(&[most.as_bytes(), b"\n", most.as_bytes()], Framing::Lines),
            Ok(2)
        );
        assert_eq!(too_long(&[most.as_bytes(), b"y"], Framing::Lines), message);
        assert_eq!(
            too_long(&[b"data: ", most.as_bytes()], Framing::ServerSent),
            message
        );
        let lines = b"data: x\r\n".repeat(MAX_EVENT_BYTES / 7 + 1);
        assert_eq!(too_long(&[&lines], Framing::ServerSent), message);
        let mut long = Events::new(Framing::ServerSent);
        long.taken = MAX_STREAM_BYTES - 8;
        let mut ping = || {
            long.take(b": ping\n\n", |_| Ok(ControlFlow::Continue(())))
                .map_err(|error| error.to_string())
        };
        assert_eq!(ping(), Ok(()));
        assert_eq!(
            ping(),
            Err("the model server sent more than 128 MB in one answer; it was stopped".to_owned())
        );
    }

    proptest! {
        /// The same events, wherever the network cuts the bytes: in a character, between `\r` and
        /// `\n`.
        #[test]
        fn chunks_make_no_difference(stream in "((data|event|error|x)?:? ?[aé{}\n\r]{0,8}(\n|\r|\r\n){0,2}){0,8}", cuts in prop::collection::vec(0usize..80, 0..8)) {
            let bytes = stream.as_bytes();
            let mut ends: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).chain([0, bytes.len()]).collect();
            ends.sort_unstable();
            let pieces: Vec<&[u8]> = ends.windows(2).map(|ends| &bytes[ends[0]..ends[1]]).collect();
            for framing in [Framing::ServerSent, Framing::Lines] {
                prop_assert_eq!(events(framing, &pieces), events(framing, &[bytes]));
            }
        }
    }
}
