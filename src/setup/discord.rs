//! Step 2 for Discord: a bot, checked at once, with its invitation, owner and channels.

use super::places::Seen;
use super::plan::Change;
use super::questions::{Answer, Stop};
use super::telegram::TokenQuestion;
use super::{Part, PlatformWish, Setup, texts};
use crate::channels::discord::{Account, Survey};
use crate::config::{Config, Secret};
use crate::domain::Platform;

/// Discord's own server.
const API: &str = "https://discord.com";

impl Setup<'_> {
    pub(super) async fn discord(&mut self) -> Answer<()> {
        let config = self.facts()?.config;
        let wish = self.wishes.discord.clone();
        let is_meant = wish.token.is_some() || self.wishes.part == Some(Part::Discord);
        let is_in_environment = std::env::var_os(VARIABLE).is_some();
        // A single platform is enough to begin with: a second is connected on request.
        let is_first = config.telegram.is_none() && (self.asker.is_person() || is_in_environment);
        let is_asked = is_meant || config.discord.is_none() && is_first;
        if !is_asked {
            return Ok(());
        }
        self.asker.say(texts::TWO_DISCORD);
        self.connect_discord(wish).await
    }

    async fn connect_discord(&mut self, mut wish: PlatformWish) -> Answer<()> {
        const QUESTION: TokenQuestion = TokenQuestion {
            platform: Platform::Discord,
            title: "Discord",
            variable: VARIABLE,
            help: "Make an application at https://discord.com/developers/applications. On its page Bot, switch Message Content Intent on, and reset the token.",
            look: |_| None,
        };
        loop {
            let Some(token) = self.token(&QUESTION, &wish)? else {
                return Ok(());
            };
            if self.is_planning() {
                return self.connect(&QUESTION, token, &wish).await;
            }
            let api_url = wish.api_url.as_deref().unwrap_or(API);
            match Survey::new(api_url, token.secret.clone()).account().await {
                Ok(account) => {
                    self.asker.say(&told(&account));
                    if self
                        .asker
                        .confirm(&format!("Connect {}?", account.name), true)?
                    {
                        self.connect(&QUESTION, token, &wish).await?;
                        return self.maker(&account).await;
                    }
                }
                Err(problem) => self.asker.say(&format!("{problem}.")),
            }
            if !self.asker.is_person() {
                return Err(Stop::Failed("Discord is not connected".to_owned()));
            }
            wish.token = None;
        }
    }

    /// The bot's maker becomes its owner, after a yes.
    async fn maker(&mut self, account: &Account) -> Answer<()> {
        if !self.wishes.owners.is_empty() {
            let owners = self.wishes.owners.iter().cloned();
            let changes = owners.map(|person| Change::Owner { person }).collect();
            return self.commit(changes, Vec::new()).await;
        }
        let Some((person, name)) = account.maker.clone() else {
            return Ok(());
        };
        let question =
            format!("{name} ({person}) made this bot. Is this you? You become the owner.");
        // Without a person, the right account cannot be confirmed.
        match self.asker.is_person() && self.asker.confirm(&question, true)? {
            true => {
                self.commit(vec![Change::Owner { person }], Vec::new())
                    .await
            }
            false => Ok(()),
        }
    }

    /// Channels chosen by a person from the bot's servers.
    pub(super) async fn discord_places(&mut self, config: &Config) -> Answer<Vec<Seen>> {
        let Some(survey) = survey_of(config) else {
            return Ok(Vec::new());
        };
        let channels = match survey.channels().await {
            Ok(channels) => channels,
            Err(problem) => {
                self.asker.say(&format!("{problem}."));
                return Ok(Vec::new());
            }
        };
        let bound: Vec<&str> = config
            .bindings
            .iter()
            .map(|binding| binding.pattern.value.as_str())
            .collect();
        let mut free: Vec<Seen> = channels
            .into_iter()
            .filter(|channel| !bound.contains(&channel.place.to_string().as_str()))
            .map(|channel| Seen {
                label: format!("#{}, on {}", channel.name, channel.server),
                name: Some(channel.name),
                place: channel.place,
            })
            .collect();
        if free.is_empty() {
            self.asker
                .say("The bot sees no channel yet. Invite it to a server first.");
        }
        let mut chosen = Vec::new();
        while !free.is_empty() {
            let mut labels: Vec<String> = free.iter().map(|seen| seen.label.clone()).collect();
            labels.push("no more".to_owned());
            let at = self
                .asker
                .choose("Which channel shall have an agent?", &labels, 0)?;
            if at >= free.len() {
                break;
            }
            chosen.push(free.remove(at));
        }
        Ok(chosen)
    }
}

const VARIABLE: &str = "DISCORD_BOT_TOKEN";

fn survey_of(config: &Config) -> Option<Survey> {
    let platform = &config.discord.as_ref()?.platform;
    let token: Secret = platform.token.clone();
    (!token.expose().is_empty()).then(|| Survey::new(&platform.api_url, token))
}

fn told(account: &Account) -> String {
    let intent = match account.reads_text {
        true => String::new(),
        false => format!(
            "\nIts Message Content Intent is off, so it would read no messages. Switch it on at {}",
            account.settings()
        ),
    };
    format!(
        "This is {}.{intent}\nInvite it to your server: {}",
        account.name,
        account.invitation()
    )
}
