//! Step 2: a bot at Telegram, checked at once, and its owner.

use std::time::Duration;

use tokio::time::sleep;

use super::plan::{Change, Keeper};
use super::questions::{Answer, Stop};
use super::write::NewSecret;
use super::{PlatformWish, Setup, texts};
use crate::channels::telegram::{Account, Sighting, Survey, SurveyError};
use crate::config::{Config, Secret, Transport};
use crate::domain::{PersonId, Platform};

/// Telegram's own server.
const API: &str = "https://api.telegram.org";
/// Telegram slows down programs with many repeated questions.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
/// Keys are looked for so often while Telegram is waited for.
const KEYS: Duration = Duration::from_millis(100);

/// A token with its keeper.
pub(super) struct Token {
    pub(super) keeper: Keeper,
    pub(super) secret: Secret,
    /// A pasted token, to be written.
    pub(super) paste: Option<NewSecret>,
}

/// A platform's token, and the question for the token.
pub(super) struct TokenQuestion {
    pub(super) platform: Platform,
    pub(super) title: &'static str,
    /// The usual variable of the token.
    pub(super) variable: &'static str,
    pub(super) help: &'static str,
    /// What is wrong with the form of a pasted token.
    pub(super) look: fn(&str) -> Option<&'static str>,
}

impl Setup<'_> {
    pub(super) async fn telegram(&mut self) -> Answer<()> {
        let facts = self.facts()?;
        let has_wish = self.wishes.telegram.token.is_some();
        match facts.config.telegram.is_some() && !has_wish {
            true => self.say_connected(&facts.config).await,
            false => {
                self.asker.say(texts::TWO_TELEGRAM);
                self.connect_telegram().await?;
            }
        }
        let config = self.facts()?.config;
        self.owners(&config).await
    }

    /// Shows a bot of the config, as Telegram knows it today.
    async fn say_connected(&mut self, config: &Config) {
        let Some(survey) = survey_of(config).filter(|_| !self.is_planning()) else {
            return;
        };
        match survey.account().await {
            Ok(account) => {
                self.asker
                    .say(&format!("{}: @{}", texts::TWO_TELEGRAM, account.username));
            }
            Err(error) => self
                .asker
                .say(&format!("{}: connected, but {error}.", texts::TWO_TELEGRAM)),
        }
    }

    async fn connect_telegram(&mut self) -> Answer<()> {
        const QUESTION: TokenQuestion = TokenQuestion {
            platform: Platform::Telegram,
            title: "Telegram",
            variable: "TELEGRAM_BOT_TOKEN",
            help: "In Telegram, write /newbot to @BotFather (https://t.me/BotFather). It gives you a token.",
            look: oddity,
        };
        let mut wish = self.wishes.telegram.clone();
        loop {
            let Some(token) = self.token(&QUESTION, &wish)? else {
                return Ok(());
            };
            let is_good = self.is_planning() || self.is_right_bot(&token, &wish).await?;
            if is_good {
                return self.connect(&QUESTION, token, &wish).await;
            }
            if !self.asker.is_person() {
                return Err(Stop::Failed("Telegram is not connected".to_owned()));
            }
            wish.token = None;
        }
    }

    /// The token by flag, environment or paste. None to go on without the platform.
    pub(super) fn token(
        &mut self,
        question: &TokenQuestion,
        wish: &PlatformWish,
    ) -> Answer<Option<Token>> {
        let TokenQuestion {
            platform,
            title,
            variable,
            help,
            look,
        } = question;
        if let Some(keeper) = wish.token.clone() {
            let secret = match self.secret(&keeper) {
                Some(secret) => secret,
                None if self.is_planning() => Secret::default(),
                None => return Err(Stop::Failed(unreadable(&keeper))),
            };
            return Ok(Some(Token {
                keeper,
                secret,
                paste: None,
            }));
        }
        let keeper = Keeper::Env((*variable).to_owned());
        if let Some(secret) = self.secret(&keeper)
            && self
                .asker
                .confirm(&format!("Use the token in {variable}?"), true)?
        {
            return Ok(Some(Token {
                keeper,
                secret,
                paste: None,
            }));
        }
        if !self.asker.is_person() {
            return Ok(None);
        }
        self.asker.say(help);
        let asked =
            format!("Its token, pasted (it is not shown; Enter alone goes on without {title}):");
        let pasted = loop {
            let pasted = self.asker.secret(&asked)?.trim().to_owned();
            if pasted.is_empty() {
                return Ok(None);
            }
            match look(&pasted) {
                Some(problem) => self.asker.say(problem),
                None => break pasted,
            }
        };
        let (path, secret) = (format!("secrets/{platform}"), Secret::new(pasted));
        Ok(Some(Token {
            keeper: Keeper::File(path.clone()),
            secret: secret.clone(),
            paste: Some(NewSecret { path, secret }),
        }))
    }

    pub(super) async fn connect(
        &mut self,
        question: &TokenQuestion,
        token: Token,
        wish: &PlatformWish,
    ) -> Answer<()> {
        let change = Change::Platform {
            platform: question.platform,
            token: token.keeper,
            api_url: wish.api_url.clone(),
        };
        self.commit(vec![change], token.paste.into_iter().collect())
            .await
    }

    /// Asks Telegram about the bot, and the person for a confirmation of the bot.
    async fn is_right_bot(&mut self, token: &Token, wish: &PlatformWish) -> Answer<bool> {
        let api_url = wish.api_url.as_deref().unwrap_or(API);
        let survey = Survey::new(api_url, token.secret.clone(), None);
        let account = match survey.account().await {
            Ok(account) => account,
            Err(error) => {
                self.asker.say(&format!("{error}."));
                return Ok(false);
            }
        };
        self.asker.say(&texts::account(&account));
        if !self.is_free(&survey, &account).await? {
            return Ok(false);
        }
        let question = format!("Connect @{}?", account.username);
        self.asker.confirm(&question, true)
    }

    /// Has a webhook of another program removed, after a yes.
    async fn is_free(&mut self, survey: &Survey, account: &Account) -> Answer<bool> {
        let Some(url) = &account.webhook else {
            return Ok(true);
        };
        self.asker.say(&texts::webhook(url));
        if !self.asker.confirm("Remove the webhook?", true)? {
            self.asker.say(texts::KEEPS_WEBHOOK);
            return Ok(false);
        }
        match survey.remove_webhook().await {
            Ok(()) => Ok(true),
            Err(error) => {
                self.asker.say(&format!("{error}."));
                Ok(false)
            }
        }
    }

    /// Owners by flag, or the person who writes to the bot now.
    async fn owners(&mut self, config: &Config) -> Answer<()> {
        if !self.wishes.owners.is_empty() {
            let owners = self.wishes.owners.iter().cloned();
            let changes = owners.map(|person| Change::Owner { person }).collect();
            return self.commit(changes, Vec::new()).await;
        }
        let is_known = config
            .access
            .owners
            .iter()
            .any(|owner| owner.platform() == Platform::Telegram);
        let Some(survey) = survey_of(config).filter(|_| !is_known && !self.is_planning()) else {
            return Ok(());
        };
        let Ok(account) = survey.account().await else {
            return Ok(());
        };
        if self.home.is_running() {
            self.asker.say(&texts::gateway_listens(&account.username));
            return Ok(());
        }
        if !self.asker.is_person() {
            self.asker.say(NO_OWNER);
            return Ok(());
        }
        // Keys are read singly from here on, so that Enter ends the watch.
        self.asker.pressed()?;
        self.asker.say(&texts::write_to(&account.username));
        self.owner_who_writes(survey).await
    }

    async fn owner_who_writes(&mut self, survey: Survey) -> Answer<()> {
        let mut refused: Vec<PersonId> = Vec::new();
        let mut watch = Watch::new(survey);
        while let Some(seen) = self.watch(&mut watch).await? {
            let others = seen.into_iter().filter(|seen| seen.place.is_private());
            for seen in others {
                if refused.contains(&seen.person) {
                    continue;
                }
                let Sighting {
                    person,
                    person_name,
                    ..
                } = seen;
                let question =
                    format!("{person_name} ({person}) wrote. Is this you? You become the owner.");
                if self.asker.confirm(&question, true)? {
                    return self
                        .commit(vec![Change::Owner { person }], Vec::new())
                        .await;
                }
                refused.push(person);
            }
        }
        self.asker.say(NO_OWNER);
        Ok(())
    }

    /// The updates that wait for the bot, looked at again and again. None once Enter was pressed.
    pub(super) async fn watch(&mut self, watch: &mut Watch) -> Answer<Option<Vec<Sighting>>> {
        loop {
            let Watch {
                survey,
                told,
                has_looked,
            } = &mut *watch;
            let pause = match std::mem::replace(has_looked, true) {
                true => BETWEEN_LOOKS,
                false => Duration::ZERO,
            };
            let looking = async {
                sleep(pause).await;
                survey.look().await
            };
            tokio::pin!(looking);
            let looked = loop {
                tokio::select! {
                    looked = &mut looking => break looked,
                    () = sleep(KEYS) => if self.asker.pressed()? {
                        return Ok(None);
                    },
                }
            };
            match looked {
                Ok(seen) if seen.is_empty() => {}
                Ok(seen) => return Ok(Some(seen)),
                Err(error) if told.as_ref() != Some(&error) => {
                    match &error {
                        SurveyError::AnotherListener => self.asker.say(texts::ANOTHER_LISTENER),
                        other => self.asker.say(&format!("{other}. Trying on.")),
                    }
                    *told = Some(error);
                }
                Err(_) => {}
            }
        }
    }
}

/// Looks at a bot, again and again.
pub(super) struct Watch {
    survey: Survey,
    /// A problem known to the person.
    told: Option<SurveyError>,
    has_looked: bool,
}

impl Watch {
    pub(super) fn new(survey: Survey) -> Self {
        Watch {
            survey,
            told: None,
            has_looked: false,
        }
    }
}

/// A look at the bot of the config. None without a polling bot, or without its token.
pub(super) fn survey_of(config: &Config) -> Option<Survey> {
    let telegram = config.telegram.as_ref()?;
    let polls = matches!(telegram.transport, Transport::Polling);
    let token = telegram.platform.token.clone();
    (polls && !token.expose().is_empty())
        .then(|| Survey::new(&telegram.platform.api_url, token, telegram.proxy.clone()))
}

/// `123456789:AA…` is the number of the bot, a colon, and the secret.
fn oddity(token: &str) -> Option<&'static str> {
    match token.split_once(':') {
        None => Some("A token looks like 123456789:AA…; this has no colon."),
        Some((number, _)) if !number.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some("A token looks like 123456789:AA…; this does not begin with a number.")
        }
        Some(_) => None,
    }
}

fn unreadable(keeper: &Keeper) -> String {
    match keeper {
        Keeper::Env(name) => format!("the environment variable {name} is not set"),
        Keeper::File(path) => format!("the file {path} has no token in it, or cannot be read"),
    }
}

const NO_OWNER: &str = "No owner yet. Write to the bot once it runs: it gives you a code for `parlor pair CODE --owner`.";
