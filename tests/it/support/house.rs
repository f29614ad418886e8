//! A home folder with a config, a fake Telegram and a fake model, and the real gateway on top:
//! inside this process, or as the real binary that can be killed.

use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Mutex, OnceLock};

use parlor::gateway::{Gateway, StartError};
use parlor::home::{Home, LockError};
use rusqlite::Connection;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::checker::{self, Promise};
use super::fake_discord::{FakeDiscord, GuildHandle};
use super::fake_model::{Dialect, FakeModel};
use super::fake_telegram::{ALICE, FakeTelegram};

/// Everything a gateway needs. Dropping it fails the test if a promise about messages was broken.
pub(crate) struct House {
    pub(crate) telegram: FakeTelegram,
    pub(crate) model: FakeModel,
    pub(crate) home: TempDir,
    discord: OnceLock<FakeDiscord>,
    /// Promises that the test breaks on purpose.
    given_up: Mutex<Vec<Promise>>,
}

impl House {
    /// `rest` is what follows the platform and the provider: access, agents, bindings.
    pub(crate) async fn new(rest: &str) -> Self {
        Self::with_top("", rest).await
    }

    /// `top` has keys of the config's top level.
    pub(crate) async fn with_top(top: &str, rest: &str) -> Self {
        // The gateway inside this process starts the real binary for work on strangers' bytes.
        parlor::sandbox::use_program(env!("CARGO_BIN_EXE_parlor"));
        let (telegram, model) = (FakeTelegram::start().await, FakeModel::start().await);
        let house = House {
            telegram,
            model,
            home: private_folder(),
            discord: OnceLock::new(),
            given_up: Mutex::default(),
        };
        house.write("secrets/telegram", house.telegram.token());
        house.configure(top, rest);
        house
    }

    /// Writes the config anew, as an operator would.
    pub(crate) fn configure(&self, top: &str, rest: &str) {
        let (api_url, base_url) = (
            self.telegram.api_url(),
            self.model.base_url(Dialect::OpenAi),
        );
        // Few conversations are about limits of people, and their guests may write as they like.
        let unlimited = if rest.contains("[access.limits") {
            ""
        } else {
            "[access.limits.guest]\nmessages_per_minute = 0\nturns_per_minute = 0\ntokens_per_day = 0\nturns_at_once = 0\n"
        };
        self.write(
            "config.toml",
            &format!(
                "default_model = \"fake/any\"\n{top}\n\
                 [telegram]\ntoken = {{ file = \"secrets/telegram\" }}\napi_url = \"{api_url}\"\n\
                 limits = {{ per_second = 0, chat_per_second = 0, group_per_minute = 0 }}\n\
                 [providers.fake]\nkind = \"openai\"\nbase_url = \"{base_url}\"\n{rest}\n{unlimited}"
            ),
        );
    }

    /// Adds keys to `[telegram]`.
    pub(crate) fn configure_telegram(&self, keys: &str) {
        let written = std::fs::read_to_string(self.home.path().join("config.toml"))
            .expect("there is a config");
        self.write(
            "config.toml",
            &written.replace("[telegram]\n", &format!("[telegram]\n{keys}\n")),
        );
    }

    /// Adds keys to `[providers.fake]`.
    pub(crate) fn configure_provider(&self, keys: &str) {
        let written = std::fs::read_to_string(self.home.path().join("config.toml"))
            .expect("there is a config");
        self.write(
            "config.toml",
            &written.replace("[providers.fake]\n", &format!("[providers.fake]\n{keys}\n")),
        );
    }

    /// A Discord beside the Telegram, with more keys in `[discord]`.
    pub(crate) async fn add_discord(&self, keys: &str) -> FakeDiscord {
        let discord = FakeDiscord::start().await;
        self.write("secrets/discord", discord.token());
        let written = std::fs::read_to_string(self.home.path().join("config.toml"))
            .expect("there is a config");
        let section = format!(
            "[discord]\ntoken = {{ file = \"secrets/discord\" }}\napi_url = \"{}\"\n\
             limits = {{ per_second = 0, channel_per_second = 0 }}\n{keys}\n[telegram]\n",
            discord.url()
        );
        self.write("config.toml", &written.replace("[telegram]\n", &section));
        drop(self.discord.set(discord.clone()));
        discord
    }

    /// A house with a Discord and one server in it.
    pub(crate) async fn with_garden(keys: &str, rest: &str) -> (Self, FakeDiscord, GuildHandle) {
        let house = House::new(rest).await;
        let discord = house.add_discord(keys).await;
        let guild = discord.guild(8001, "Garden");
        (house, discord, guild)
    }

    /// The config as it is written now.
    pub(crate) fn config(&self) -> String {
        std::fs::read_to_string(self.home.path().join("config.toml")).expect("a config")
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.home.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a file in a folder"))
            .expect("the folder can be made");
        let mut file = std::fs::OpenOptions::new();
        file.write(true).create(true).truncate(true).mode(0o600);
        let file = file
            .open(path)
            .and_then(|mut file| file.write_all(text.as_bytes()));
        file.expect("the file can be written");
    }

    pub(crate) async fn open(&self) -> Gateway {
        for _ in 0..200 {
            match self.try_open().await {
                // A child that another test is just starting holds copies of all our files, locks
                // included, for a moment.
                Err(StartError::Lock(LockError::Held { .. })) => {
                    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                }
                started => return started.expect("the gateway starts"),
            }
        }
        panic!("the home stayed locked");
    }

    /// Returns once the bot is connected to Discord too.
    pub(crate) async fn open_with(&self, discord: &FakeDiscord) -> Gateway {
        let gateway = self.open().await;
        discord.connected().await;
        gateway
    }

    /// Waits for every answer, and stops.
    pub(crate) async fn close(&self, gateway: Gateway) {
        self.settled(&gateway).await;
        gateway.shutdown().await;
    }

    pub(crate) async fn try_open(&self) -> Result<Gateway, StartError> {
        Gateway::start(Home::new(self.home.path())).await
    }

    /// Everything that was sent to the bot so far is answered.
    pub(crate) async fn settled(&self, gateway: &Gateway) {
        self.telegram.all_confirmed().await;
        gateway.settled().await;
    }

    /// Messages are looked at one after the other: when this one is answered, all before it are in
    /// their lanes. To be confirmed, they need only be stored.
    pub(crate) async fn all_in_their_lanes(&self) {
        let answers = |texts: &[String]| {
            let answers = texts.iter().filter(|text| text.starts_with("You are "));
            answers.count()
        };
        let desk = self.telegram.dm(ALICE);
        // Notices for owners come there too.
        let before = answers(&desk.texts());
        desk.says("/whoami").await;
        let is_answered = |texts: &[String]| answers(texts) > before;
        desk.place().wait_for("an answer", is_answered).await;
    }

    /// The real binary. Returns once it polls.
    pub(crate) async fn spawn(&self) -> Process {
        let polls = self.telegram.calls("getUpdates").len();
        let process = Process::start(self.home.path(), &["run"]);
        self.telegram.wait_for_calls("getUpdates", polls + 1).await;
        process
    }

    /// One value from the store.
    pub(crate) fn ask(&self, sql: &str) -> String {
        ask(self.home.path(), sql)
    }

    /// Changes the store behind the gateway's back.
    pub(crate) fn tell(&self, sql: &str) {
        let connection =
            Connection::open(self.home.path().join("parlor.db")).expect("the database opens");
        connection.execute(sql, []).expect("the statement works");
    }

    /// From now on a statement can never work, such as one that would `INSERT ON turns`.
    pub(crate) fn breaks(&self, statement: &str) {
        self.tell(&format!(
            "CREATE TRIGGER broken BEFORE {statement} BEGIN SELECT RAISE(ABORT, 'broken on purpose'); END"
        ));
    }

    /// From now on a statement fails as on a full disk.
    pub(crate) fn fills_up(&self, statement: &str) {
        full(self.home.path(), statement);
    }

    /// Ends what [`House::breaks`] or [`House::fills_up`] began.
    pub(crate) fn works_again(&self) {
        self.tell("DROP TRIGGER broken");
    }

    /// The id of a place in the store, which gets a row if it has none.
    pub(crate) fn place_id(&self, key: &str) -> i64 {
        self.tell(&format!(
            "INSERT INTO places (key, created_at) VALUES ('{key}', 0) ON CONFLICT DO NOTHING"
        ));
        self.ask(&format!("SELECT id FROM places WHERE key = '{key}'"))
            .parse()
            .expect("a number")
    }

    /// Returns when the store answers this.
    pub(crate) async fn wait_until_stored(&self, sql: &str, answer: &str) {
        wait_until_stored(self.home.path(), sql, answer).await;
    }

    /// Returns when the gateway takes no more visitors, because it is stopping.
    pub(crate) async fn wait_until_unreachable(&self) {
        let socket = self.home.path().join("parlor.sock");
        let looking = async {
            while std::os::unix::net::UnixStream::connect(&socket).is_ok() {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        let waited = tokio::time::timeout(std::time::Duration::from_secs(20), looking).await;
        assert!(waited.is_ok(), "the gateway still takes visitors");
    }

    /// For tests that end with something undelivered on purpose.
    pub(crate) fn leave_leftovers(&mut self) {
        self.give_up(Promise::NothingLeft);
    }

    /// For tests that break a promise on purpose.
    pub(crate) fn give_up(&self, promise: Promise) {
        self.given_up.lock().expect("nobody panicked").push(promise);
    }
}

impl Drop for House {
    fn drop(&mut self) {
        let store = self.home.path().join("parlor.db");
        if std::thread::panicking() || !store.exists() {
            return;
        }
        let store = Connection::open(store).expect("the database opens");
        let mut faults = checker::faults(&store, &self.telegram, self.discord.get());
        let given_up = self.given_up.get_mut().expect("nobody panicked");
        faults.retain(|(promise, _)| !given_up.contains(promise));
        assert!(faults.is_empty(), "promises were broken: {faults:#?}");
    }
}

/// A statement fails as on a full disk: SQLite says so too when a table has no number left for a
/// row. The trigger is called `broken`.
pub(crate) fn full(home: &Path, statement: &str) {
    let connection = Connection::open(home.join("parlor.db")).expect("the database opens");
    let sql = format!(
        "CREATE TABLE IF NOT EXISTS no_room (id INTEGER PRIMARY KEY AUTOINCREMENT);
         INSERT OR IGNORE INTO no_room VALUES (9223372036854775807);
         CREATE TRIGGER broken BEFORE {statement} BEGIN INSERT INTO no_room (id) VALUES (NULL); END"
    );
    connection.execute_batch(&sql).expect("the statements work");
}

/// As `parlor init` makes a home.
fn private_folder() -> TempDir {
    let mut folder = tempfile::Builder::new();
    folder.permissions(std::fs::Permissions::from_mode(0o700));
    folder.tempdir().expect("a folder")
}

pub(crate) fn ask(home: &Path, sql: &str) -> String {
    let connection = Connection::open(home.join("parlor.db")).expect("the database opens");
    connection
        .query_row(sql, [], |row| {
            Ok(match row.get_ref(0)? {
                rusqlite::types::ValueRef::Null => "null".to_owned(),
                rusqlite::types::ValueRef::Integer(number) => number.to_string(),
                rusqlite::types::ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
                other => format!("{other:?}"),
            })
        })
        .expect("the question has an answer")
}

/// Returns when the store answers this. The store of another process cannot wake us, so it is asked
/// again and again.
pub(crate) async fn wait_until_stored(home: &Path, sql: &str, answer: &str) {
    let asking = async {
        while ask(home, sql) != answer {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(std::time::Duration::from_secs(20), asking).await;
    assert!(
        waited.is_ok(),
        "{sql} did not become {answer}, but is {}",
        ask(home, sql)
    );
}

/// The real binary, killed when the test lets go of it.
pub(crate) struct Process {
    child: Child,
    log: std::path::PathBuf,
    /// The length of the log when the process began: earlier processes write into the same file.
    begin: usize,
}

impl Process {
    pub(crate) fn start(home: &Path, arguments: &[&str]) -> Self {
        let mut command = parlor(home);
        command.args(arguments);
        Self::start_as(command, home)
    }

    /// With an environment of its own.
    pub(crate) fn start_as(mut command: Command, home: &Path) -> Self {
        let log = home.join("test.log");
        let begin = std::fs::read(&log).map_or(0, |text| text.len());
        let stderr = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)
            .expect("a log file");
        let child = command
            .stderr(stderr)
            .kill_on_drop(true)
            .spawn()
            .expect("the binary starts");
        Process { child, log, begin }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// SIGKILL: no goodbye.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.expect("it can be killed");
    }

    /// Returns when the process has ended, however that was.
    pub(crate) async fn ended(mut self) {
        self.child.wait().await.expect("it ends");
    }

    /// Whether the process has ended.
    pub(crate) fn is_over(&mut self) -> bool {
        self.child.try_wait().expect("it can be asked").is_some()
    }

    /// Any signal, by its name.
    pub(crate) async fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &pid])
            .status()
            .await;
        assert!(sent.expect("kill is there").success());
    }

    /// SIGTERM, and the exit code.
    pub(crate) async fn stop(self) -> i32 {
        let pid = self.pid().to_string();
        let sent = Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .await
            .expect("kill is there");
        assert!(sent.success());
        self.exit_code().await
    }

    pub(crate) async fn exit_code(mut self) -> i32 {
        self.child
            .wait()
            .await
            .expect("it ends")
            .code()
            .expect("it ends by itself")
    }

    /// Returns when the process has logged a text.
    pub(crate) async fn wait_for_log(&self, text: &str) {
        let looking = async {
            while !self.log()[self.begin..].contains(text) {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        let found = tokio::time::timeout(std::time::Duration::from_secs(30), looking).await;
        assert!(found.is_ok(), "the log has no {text:?}:\n{}", self.log());
    }

    /// Returns when so many lines of the log have a text.
    pub(crate) async fn wait_for_log_lines(&self, text: &str, count: usize) {
        let looking = async {
            while self.log().matches(text).count() < count {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        let found = tokio::time::timeout(std::time::Duration::from_secs(30), looking).await;
        assert!(
            found.is_ok(),
            "the log has {text:?} less than {count} times:\n{}",
            self.log()
        );
    }

    /// SIGHUP.
    pub(crate) async fn hang_up(&self) {
        self.signal("HUP").await;
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).expect("the log is text")
    }
}

/// The binary with a clean environment.
pub(crate) fn parlor(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_parlor"));
    command
        .env_clear()
        .env("PARLOR_HOME", home)
        .env("USER", "ann")
        .stdin(Stdio::null());
    command
}
