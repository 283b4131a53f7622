//! Clients of the lab and its parts. Every request says which part has sent it.

use api::set_user_agent;
use kube::{Client, Config, Result};

/// What the lab itself is called in its requests, where no part of it is meant.
pub const LAB: &str = "lab";

/// Connects as `config` says. `component` is the part that makes the requests.
pub fn client(mut config: Config, component: &str) -> Result<Client> {
    set_user_agent(&mut config.headers, component).map_err(kube::Error::HttpError)?;
    Client::try_from(config)
}
