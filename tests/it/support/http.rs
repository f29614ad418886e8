//! Calls to the admin listener, as bytes on a socket, so that every header is the test's own.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A call to be made.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<String>,
}

/// An answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Call {
    pub(crate) fn new(method: &str, path: &str) -> Self {
        Call {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: None,
        }
    }

    pub(crate) fn get(path: &str) -> Self {
        Call::new("GET", path)
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn token(self, token: &str) -> Self {
        self.header("Authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn json(mut self, body: &Value) -> Self {
        self.body = Some(body.to_string());
        self.header("Content-Type", "application/json")
    }

    pub(crate) async fn send(&self, address: &str) -> Answer {
        let has = |wanted: &str| {
            let mut names = self.headers.iter().map(|(name, _)| name);
            names.any(|name| name.eq_ignore_ascii_case(wanted))
        };
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        if !has("host") {
            text += &format!("Host: {address}\r\n");
        }
        for (name, value) in &self.headers {
            text += &format!("{name}: {value}\r\n");
        }
        let body = self.body.clone().unwrap_or_default();
        if !has("content-length") {
            text += &format!("Content-Length: {}\r\n", body.len());
        }
        text += &format!("Connection: close\r\n\r\n{body}");
        let mut stream = TcpStream::connect(address).await.expect("somebody listens");
        stream.write_all(text.as_bytes()).await.expect("it reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.expect("an answer");
        Answer::read(&String::from_utf8(answer).expect("text"))
    }
}

impl Answer {
    fn read(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let answer = Answer {
            status: status.expect("a status"),
            head: head.to_owned(),
            body: body.to_owned(),
        };
        match answer.header("transfer-encoding") {
            Some(_) => Answer {
                body: unchunked(body),
                ..answer
            },
            None => answer,
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut found = lines.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("JSON: {self:?}"))
    }

    /// The name and value of the cookie that a browser would send back.
    pub(crate) fn cookie(&self) -> String {
        let line = self.header("set-cookie").expect("a cookie");
        line.split(';').next().expect("a pair").to_owned()
    }
}

fn unchunked(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap_or(0);
        if size == 0 {
            break;
        }
        body += &after[..size];
        rest = after[size..].trim_start_matches("\r\n");
    }
    body
}
