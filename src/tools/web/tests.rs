use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::domain::Source;
use crate::tools::Form;
use crate::tools::tests::scope_in;

/// A server that gives each path its answer, and tells how many it was asked.
struct Site {
    address: SocketAddr,
    asked: Arc<std::sync::atomic::AtomicUsize>,
}

impl Site {
    async fn start(answers: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let site = Site {
            address: listener.local_addr().unwrap(),
            asked: Arc::default(),
        };
        let asked = site.asked.clone();
        tokio::spawn(async move {
            while let Ok((mut connection, _)) = listener.accept().await {
                asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                let mut request = Vec::with_capacity(8192);
                connection.read_buf(&mut request).await.unwrap();
                let request = String::from_utf8(request).unwrap();
                let path = request.split_whitespace().nth(1).unwrap_or("/").to_owned();
                // Whoever asked may have had enough.
                let mut written = connection.write_all(&answers(&path)).await;
                while written.is_ok() && path == "/endless" {
                    written = connection.write_all(&[b'x'; 8192]).await;
                }
            }
        });
        site
    }

    fn url(&self, host: &str, path: &str) -> String {
        format!("http://{host}:{}{path}", self.address.port())
    }

    fn asked(&self) -> usize {
        self.asked.load(std::sync::atomic::Ordering::SeqCst)
    }
}

fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\n{headers}connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// As in production, but 127.0.0.1 counts as public, any port is fine, and names lead where the
/// test says.
fn tool() -> WebFetch {
    let rules = Rules {
        may_connect: |ip| ip == IpAddr::from([127, 0, 0, 1]) || address::is_public(ip),
        nearby: || {
            Ok(nearby::Nearby::of(&[
                ("93.184.215.14", 24),
                ("2a01:4f8:1:2::3", 128),
            ]))
        },
        may_use_port: |_| true,
        lookup: |name| {
            let known = NAMES
                .iter()
                .filter(|(known, _)| *known == name)
                .map(|(_, ip)| ip.parse().unwrap());
            Some(known.collect())
        },
    };
    WebFetch {
        rules,
        client: OnceLock::new(),
    }
}

async fn read(tool: &WebFetch, url: &str) -> String {
    let told = tool
        .call(&scope_in(Path::new("home")), json!({ "url": url }))
        .await;
    let is_page = !told.text.starts_with("The page was not fetched");
    assert_eq!(told.read.has(Label::Web), is_page, "{}", told.text);
    let notes: String = told
        .notes
        .iter()
        .map(|note| format!("\n[{note}]"))
        .collect();
    let page = match told.form {
        Form::Of(source) => Some(*source),
        _ => None,
    };
    match page {
        Some(Source::Page(url)) => format!("{url}\n\n{}{notes}", told.text),
        _ => told.text + &notes,
    }
}

const NAMES: &[(&str, &str)] = &[
    ("good.example", "127.0.0.1"),
    ("inside.example", "10.0.0.7"),
    ("meta.example", "169.254.169.254"),
    ("mixed.example", "127.0.0.1"),
    ("mixed.example", "::1"),
    ("mapped.example", "::ffff:10.0.0.1"),
    ("self.example", "93.184.215.14"),
    ("neighbour.example", "93.184.215.77"),
    ("six.example", "2a01:4f8:1:2::99"),
    ("half.example", "127.0.0.1"),
    ("half.example", "93.184.215.14"),
];

/// Public addresses, but those of this machine and of its neighbours.
#[tokio::test]
async fn nothing_leads_to_a_network_of_this_machine() {
    let site = Site::start(|path| {
        let to = match path {
            "/to-name" => "http://self.example/",
            _ => "http://93.184.215.14/",
        };
        answer("302 Found", &format!("location: {to}\r\n"), "")
    })
    .await;
    let tool = tool();
    let check = async |url: String, host: &str| {
        assert_eq!(
            read(&tool, &url).await,
            format!(
                "The page was not fetched: `{host}` is this machine or in a network of it, and nothing is fetched there."
            ),
            "{url}"
        );
    };
    for name in [
        "self.example",
        "neighbour.example",
        "six.example",
        "half.example",
        "93.184.215.14",
        "[2a01:4f8:1:2::3]",
    ] {
        check(site.url(name, "/"), name).await;
    }
    check("http://0x5db8d70e:8080/".to_owned(), "93.184.215.14").await;
    assert_eq!(site.asked(), 0);
    check(site.url("good.example", "/to-name"), "self.example").await;
    check(site.url("good.example", "/"), "93.184.215.14").await;
}

/// The list of interfaces may be out of reach, such as at the limit of open files.
#[tokio::test]
async fn nothing_is_fetched_while_the_own_networks_are_unknown() {
    let site = Site::start(|_| answer("200 OK", "content-type: text/plain\r\n", "secret")).await;
    let mut tool = tool();
    tool.rules.nearby = || Err(std::io::ErrorKind::PermissionDenied.into());
    let told = read(&tool, &site.url("good.example", "/")).await;
    assert!(told.starts_with("The page was not fetched: "), "{told}");
    assert_eq!(site.asked(), 0);
}

#[tokio::test]
async fn a_page_comes_as_text_over_redirects() {
    let site = Site::start(|path| match path {
        "/old" => answer("301 Moved", "location: /new\r\n", ""),
        "/new" => answer(
            "200 OK",
            "content-type: text/html\r\n",
            "<h1>Hello</h1><p>caf&eacute;",
        ),
        _ => answer("404 Not Found", "", "no"),
    })
    .await;
    let tool = tool();
    let (old, new) = (
        site.url("good.example", "/old"),
        site.url("good.example", "/new"),
    );
    assert_eq!(read(&tool, &old).await, format!("{new}\n\n# Hello\n\ncafé"));
    assert_eq!(
        read(&tool, &site.url("good.example", "/no")).await,
        "The page was not fetched: the server answered 404."
    );
}

#[tokio::test]
async fn nothing_leads_to_an_address_that_is_not_public() {
    let site = Site::start(|path| {
        let to = match path {
            "/to-name" => "http://inside.example/".to_owned(),
            "/to-meta" => "http://169.254.169.254/latest/meta-data/".to_owned(),
            "/to-six" => "http://[::1]/".to_owned(),
            "/to-file" => "file:///etc/passwd".to_owned(),
            "/to-login" => "http://user:pass@good.example/".to_owned(),
            path => path.to_owned(),
        };
        answer("302 Found", &format!("location: {to}\r\n"), "")
    })
    .await;
    let tool = tool();
    let check = async |url: String, reason: &str| {
        assert_eq!(
            read(&tool, &url).await,
            format!("The page was not fetched: {reason}."),
            "{url}"
        );
    };
    let not_public =
        |host: &str| format!("`{host}` is not on the public internet, and nothing else is fetched");
    for name in [
        "inside.example",
        "meta.example",
        "mixed.example",
        "mapped.example",
    ] {
        check(site.url(name, "/"), &not_public(name)).await;
    }
    assert_eq!(site.asked(), 0);
    for literal in [
        "10.1.2.3",
        "[::1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::a9fe:a9fe]",
        "169.254.169.254",
        "[fd00:ec2::254]",
    ] {
        check(format!("http://{literal}/"), &not_public(literal)).await;
    }
    // Other spellings of 127.0.0.2 and 10.0.0.1.
    for (written, host) in [
        ("2130706434", "127.0.0.2"),
        ("0x7f.2", "127.0.0.2"),
        ("0177.0.0.2", "127.0.0.2"),
        ("012.1", "10.0.0.1"),
    ] {
        check(format!("http://{written}/"), &not_public(host)).await;
    }
    assert_eq!(site.asked(), 0);
    check(
        site.url("good.example", "/to-name"),
        &not_public("inside.example"),
    )
    .await;
    check(
        site.url("good.example", "/to-meta"),
        &not_public("169.254.169.254"),
    )
    .await;
    check(site.url("good.example", "/to-six"), &not_public("[::1]")).await;
    check(
        site.url("good.example", "/to-file"),
        "this is no web address; it begins with http:// or https://",
    )
    .await;
    check(
        site.url("good.example", "/to-login"),
        "addresses with a name or password in them are not fetched",
    )
    .await;
    check(
        site.url("good.example", "/round"),
        "it leads on to more than 5 other addresses",
    )
    .await;
}

#[tokio::test]
async fn what_the_config_cannot_change_refuses_this_machine() {
    let site = Site::start(|_| answer("200 OK", "content-type: text/plain\r\n", "secret")).await;
    let tool = WebFetch::default();
    let check = async |url: &str, reason: &str| {
        assert_eq!(
            read(&tool, url).await,
            format!("The page was not fetched: {reason}."),
            "{url}"
        );
    };
    let not_public =
        |host: &str| format!("`{host}` is not on the public internet, and nothing else is fetched");
    check(&site.url("127.0.0.1", "/"), &not_public("127.0.0.1")).await;
    check("http://localhost/", &not_public("localhost")).await;
    check(
        "http://localhost:22/",
        "port 22 is not one that web pages are on",
    )
    .await;
    check(
        "ftp://example.org/",
        "this is no web address; it begins with http:// or https://",
    )
    .await;
    check(
        "example.org",
        "this is no web address; it begins with http:// or https://",
    )
    .await;
    assert_eq!(site.asked(), 0);
}

fn zipped(bytes: u64, of: u8) -> Vec<u8> {
    let mut zip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::copy(&mut std::io::repeat(of).take(bytes), &mut zip).unwrap();
    let body = zip.finish().unwrap();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-encoding: gzip\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    [head.into_bytes(), body].concat()
}

#[tokio::test]
async fn pages_that_are_more_than_they_seem_are_bounded() {
    let (zeroes, bomb) = (zipped(MAX_BYTES as u64, 0), zipped(200 * 1024 * 1024, b'x'));
    assert!(zeroes.len() < 4096 && bomb.len() < 300_000);
    let site = Site::start(move |path| match path {
        "/zeroes" => zeroes.clone(),
        "/bomb" => bomb.clone(),
        _ => b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n".to_vec(),
    })
    .await;
    let tool = tool();
    assert_eq!(
        read(&tool, &site.url("good.example", "/zeroes")).await,
        "The page was not fetched: it is `text/html`, which is no text."
    );
    for path in ["/bomb", "/endless"] {
        let text = read(&tool, &site.url("good.example", path)).await;
        assert!(
            text.ends_with("x\n[the page has more than 2 MB; the rest was not fetched]"),
            "{path}"
        );
        assert!(text.len() < MAX_BYTES + MAX_BYTES / 50, "{path}");
    }
}

#[tokio::test]
async fn large_and_wordless_pages_are_bounded() {
    let site = Site::start(|path| match path {
        "/huge" => answer(
            "200 OK",
            "content-type: text/plain\r\n",
            &"é".repeat(MAX_BYTES),
        ),
        _ => answer("200 OK", "content-type: image/png\r\n", "\u{1}"),
    })
    .await;
    let tool = tool();
    let text = read(&tool, &site.url("good.example", "/huge")).await;
    assert!(
        text.len() > MAX_BYTES
            && text.ends_with("é\n[the page has more than 2 MB; the rest was not fetched]")
    );
    let second = tool
        .text_of(
            &scope_in(Path::new("home")),
            &Arguments {
                url: site.url("good.example", "/huge"),
                offset: 4,
            },
        )
        .await
        .unwrap();
    assert!(
        second.text.ends_with('é') && second.notes == ["more follows from offset 24580 of 2097152"],
        "{:?}",
        second.notes
    );
    let last = tool
        .text_of(
            &scope_in(Path::new("home")),
            &Arguments {
                url: site.url("good.example", "/huge"),
                offset: MAX_BYTES - 4,
            },
        )
        .await
        .unwrap();
    assert!(
        last.text == "éé"
            && last.notes == ["the page has more than 2 MB; the rest was not fetched"],
        "{last:?}"
    );
    let picture = read(&tool, &site.url("good.example", "/picture")).await;
    assert_eq!(
        picture,
        "The page was not fetched: it is `image/png`, which is no text."
    );
}
