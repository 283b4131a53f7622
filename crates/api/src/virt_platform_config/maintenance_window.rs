//! `spec.approval.window`: the hours of a week in which nodes may be rebooted.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::WaitTimeout;
use crate::string_enum::string_enum;

string_enum! {
    /// A day of the week.
    pub enum Weekday {
        /// The first day.
        Monday = "Monday",
        /// The second day.
        Tuesday = "Tuesday",
        /// The third day.
        Wednesday = "Wednesday",
        /// The fourth day.
        Thursday = "Thursday",
        /// The fifth day.
        Friday = "Friday",
        /// The sixth day.
        Saturday = "Saturday",
        /// The seventh day.
        Sunday = "Sunday",
    }
}

/// A window that opens at the same hour on one or more days of each week.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceWindow {
    /// The days on which the window opens. Default: every day.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 7), extend("x-kubernetes-list-type" = "set"))]
    pub days: Vec<Weekday>,

    /// When it opens, as hours and minutes of the time zone, for example 22:00.
    #[schemars(length(max = 16))]
    #[x_kube(validation = (
        "self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')",
        "must be a time of day from 00:00 to 23:59, for example 22:00"
    ))]
    pub start: String,

    /// How long it stays open, for example 6h. At most 168h, a week.
    #[x_kube(validation = ("duration(self) <= duration('168h')", "must not be longer than a week, 168h"))]
    pub duration: WaitTimeout,

    /// The time zone of start, by its name in the IANA database, for example Europe/Berlin. Default: UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub time_zone: Option<String>,
}
