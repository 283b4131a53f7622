//! A request to the API server, as the audit log tells it.

use std::fmt;

use jiff::Timestamp;

/// One answered request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditedRequest {
    /// Who made it. For an impersonated request, the one who was impersonated.
    pub user: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
    /// API group, empty for the core one.
    pub group: String,
    /// Plural name; empty for requests that are not about a resource, such as `/readyz`.
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    pub uri: String,
    pub user_agent: String,
    pub code: u16,
    /// Whether it was refused because whoever made it lacks the right. Webhooks that say no answer with the same code.
    pub lacks_right: bool,
    pub dry_run: bool,
    pub field_manager: Option<String>,
    pub arrived: Timestamp,
}

impl AuditedRequest {
    /// Whether it changed what is stored, or would have if it had not been refused. Dry runs do not.
    pub fn is_write(&self) -> bool {
        !self.dry_run && matches!(&*self.verb, "create" | "update" | "patch" | "delete" | "deletecollection")
    }

    pub fn succeeded(&self) -> bool {
        (200..300).contains(&self.code)
    }
}

/// `patch virtplatformconfigs.advisor.kubevirt.io/status load-aware-rebalancing by jane: 200`
impl fmt::Display for AuditedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.verb)?;
        if self.resource.is_empty() {
            f.write_str(&self.uri)?;
        } else {
            let part = |separator: &str, text: &str| match text {
                "" => String::new(),
                text => format!("{separator}{text}"),
            };
            let AuditedRequest { resource, group, subresource, namespace, name, .. } = self;
            let (group, subresource) = (part(".", group), part("/", subresource));
            let (namespace, name) = (part(" ", namespace), part(if namespace.is_empty() { " " } else { "/" }, name));
            write!(f, "{resource}{group}{subresource}{namespace}{name}")?;
        }
        let dry_run = if self.dry_run { " (dry run)" } else { "" };
        write!(f, "{dry_run} by {}: {}", self.user, self.code)
    }
}
