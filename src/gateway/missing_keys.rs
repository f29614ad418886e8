//! Tells about providers whose key cannot be read when the gateway starts: the log, and owners once.

use super::GatewayState;

impl GatewayState {
    /// "the environment variable OPENAI_API_KEY is not set; [providers.openai] needs it"
    pub(super) fn missing_keys(&self) -> Vec<String> {
        let models = &self.services.snapshots.current().models;
        models
            .missing_keys()
            .map(|(provider, why)| format!("{why}; [providers.{provider}] needs it"))
            .collect()
    }

    pub(super) async fn tell_missing_keys(&self) {
        for missing in self.missing_keys() {
            tracing::warn!("{missing}");
        }
        let models = &self.services.snapshots.current().models;
        models.note_missing_keys();
        self.services
            .sessions
            .provider_news()
            .tell(models, None)
            .await;
    }
}
