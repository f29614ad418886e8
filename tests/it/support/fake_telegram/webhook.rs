//! The other way round: Telegram calls the bot.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::FakeTelegram;

/// A bot that starts needs a moment until it listens.
const PATIENCE: Duration = Duration::from_secs(20);

impl FakeTelegram {
    /// Calls the bot with an update, at the address its reverse proxy would use, and returns the
    /// status. 200 confirms the update.
    pub(crate) async fn call_webhook(&self, listen: &str, update_id: i64) -> u16 {
        let (update, secret) = (self.update(update_id), self.webhook_secret());
        let status = post(listen, Some(&secret), update.as_bytes())
            .await
            .expect("the bot answers");
        if status == 200 {
            self.world().updates.confirm(update_id);
            self.shared.progress.send_replace(());
        }
        status
    }

    pub(crate) fn webhook_secret(&self) -> String {
        self.world().updates.webhook_secret.clone()
    }
}

/// One call with any body.
pub(crate) async fn post(listen: &str, secret: Option<&str>, body: &[u8]) -> io::Result<u16> {
    status(begin_post(listen, secret, body).await?).await
}

/// The call is on its way when this returns; [`status`] waits for the answer.
pub(crate) async fn begin_post(
    listen: &str,
    secret: Option<&str>,
    body: &[u8],
) -> io::Result<TcpStream> {
    let secret = secret
        .map(|secret| format!("X-Telegram-Bot-Api-Secret-Token: {secret}\r\n"))
        .unwrap_or_default();
    let head = format!(
        "POST /hook HTTP/1.1\r\nHost: bot\r\nConnection: close\r\n{secret}Content-Length: {}\r\n\r\n",
        body.len()
    );
    begin(listen, &[head.as_bytes(), body].concat()).await
}

/// A connection with these first bytes.
pub(crate) async fn begin(listen: &str, bytes: &[u8]) -> io::Result<TcpStream> {
    let mut connection = connect(listen).await;
    connection.write_all(bytes).await?;
    Ok(connection)
}

/// All that is answered until the bot closes the connection.
pub(crate) async fn everything(mut connection: TcpStream) -> String {
    let mut answer = Vec::new();
    // A connection that is closed with something unread may end with an error.
    drop(connection.read_to_end(&mut answer).await);
    String::from_utf8_lossy(&answer).into_owned()
}

pub(crate) async fn status(connection: TcpStream) -> io::Result<u16> {
    let answer = everything(connection).await;
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    status.ok_or_else(|| io::Error::other("no answer"))
}

async fn connect(listen: &str) -> TcpStream {
    let connecting = async {
        loop {
            match TcpStream::connect(listen).await {
                Ok(connection) => return connection,
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, connecting)
        .await
        .expect("the bot listens")
}
