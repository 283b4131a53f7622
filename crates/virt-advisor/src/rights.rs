//! Rights, question by question: what the roles that we ship allow, asked for one user after the other.

use std::fmt;

use advisor::access::{NAMESPACE, Role, SERVICE_ACCOUNT};
use futures::stream::{self, StreamExt, TryStreamExt};
use kube_io::RequestError;
use serde_json::{Value, json};

use crate::reader::Reader;

/// So many questions are on their way at a time.
const AT_ONCE: usize = 8;

/// `config/default` gives all names this prefix.
pub(crate) const PREFIX: &str = "virt-advisor-operator-";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) verb: &'static str,
    group: &'static str,
    resource: &'static str,
    namespace: Option<String>,
    name: Option<String>,
}

/// `patch kubedeschedulers.operator.openshift.io cluster`, as `kubectl auth can-i` takes it.
impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (resource, subresource) =
            self.resource.split_once('/').map_or((self.resource, None), |(a, b)| (a, Some(b)));
        write!(f, "{} {resource}", self.verb)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if let Some(name) = &self.name {
            write!(f, "/{name}")?;
        }
        if let Some(subresource) = subresource {
            write!(f, " --subresource={subresource}")?;
        }
        if let Some(namespace) = &self.namespace {
            write!(f, " -n {namespace}")?;
        }
        Ok(())
    }
}

impl Question {
    fn attributes(&self) -> Value {
        let (resource, subresource) = self.resource.split_once('/').unwrap_or((self.resource, ""));
        json!({
            "verb": self.verb,
            "group": self.group,
            "resource": resource,
            "subresource": subresource,
            "namespace": self.namespace.clone().unwrap_or_default(),
            "name": self.name.clone().unwrap_or_default(),
        })
    }

    /// Whether a watch, or the list that begins it, needs this right.
    pub(crate) fn is_for_a_watch(&self) -> bool {
        ["list", "watch"].contains(&self.verb)
    }
}

/// One question per verb and object of each rule. What is for the operator's own namespace is asked for `namespace`.
pub(crate) fn questions(roles: &[Role], namespace: &str) -> Vec<Question> {
    let mut questions = Vec::new();
    for role in roles {
        let own = |declared: &str| if declared == NAMESPACE { namespace.to_owned() } else { declared.to_owned() };
        for rule in &role.rules {
            let names: Vec<Option<String>> = match rule.names.as_slice() {
                [] => vec![None],
                names => names.iter().cloned().map(Some).collect(),
            };
            for name in names {
                questions.extend(rule.verbs.iter().map(|&verb| Question {
                    verb,
                    group: rule.group,
                    resource: rule.resource,
                    namespace: role.namespace.map(own),
                    name: name.clone(),
                }));
            }
        }
    }
    questions
}

/// The user name of the operator's service account.
pub(crate) fn account(namespace: &str) -> String {
    format!("system:serviceaccount:{namespace}:{PREFIX}{SERVICE_ACCOUNT}")
}

/// The answers about the person who asks.
pub(crate) async fn of_caller(reader: &Reader, questions: &[Question]) -> Result<Vec<bool>, RequestError> {
    let ask = |question: &Question| {
        let spec = json!({"resourceAttributes": question.attributes()});
        async move { reader.review("selfsubjectaccessreviews", &spec).await }
    };
    stream::iter(questions.iter().map(ask)).buffered(AT_ONCE).try_collect().await
}

/// The answers about the operator. Who may ask is a right of its own.
pub(crate) async fn of_operator(
    reader: &Reader,
    namespace: &str,
    questions: &[Question],
) -> Result<Vec<bool>, RequestError> {
    let groups = ["system:serviceaccounts", &format!("system:serviceaccounts:{namespace}"), "system:authenticated"];
    let ask = |question: &Question| {
        let spec = json!({"user": account(namespace), "groups": groups, "resourceAttributes": question.attributes()});
        async move { reader.review("subjectaccessreviews", &spec).await }
    };
    stream::iter(questions.iter().map(ask)).buffered(AT_ONCE).try_collect().await
}

/// `yes  get machineconfigs…`, one line per question.
pub(crate) fn table(who: &str, questions: &[Question], answers: &[bool]) -> String {
    let line =
        |(question, allowed): (&Question, &bool)| format!("{}  {question}\n", if *allowed { "yes" } else { "no " });
    format!("What {who} may do, of what the shipped roles allow:\n\n")
        + &questions.iter().zip(answers).map(line).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_of_every_rule_is_asked_for_each_name_and_in_its_namespace() {
        let asked: Vec<_> =
            questions(&advisor::access::operator(), "elsewhere").iter().map(Question::to_string).collect();
        for expected in [
            "list virtplatformconfigs.advisor.kubevirt.io",
            "patch virtplatformconfigs.advisor.kubevirt.io --subresource=status",
            "patch machineconfigs.machineconfiguration.openshift.io/99-worker-psi-karg",
            "get configmaps/example-config -n elsewhere",
            "update leases.coordination.k8s.io/virt-advisor-operator -n elsewhere",
            "create events.events.k8s.io -n default",
        ] {
            assert!(asked.iter().any(|asked| asked == expected), "{expected} is not in {asked:#?}");
        }
        let rights = |roles: &[Role]| -> usize {
            let rules = roles.iter().flat_map(|role| &role.rules);
            rules.map(|rule| rule.verbs.len() * rule.names.len().max(1)).sum()
        };
        assert_eq!(asked.len(), rights(&advisor::access::operator()));
    }

    #[test]
    fn a_subresource_is_asked_for_as_one() {
        let question = Question { verb: "patch", group: "g", resource: "things/status", namespace: None, name: None };
        let attributes = question.attributes();
        assert_eq!((&attributes["resource"], &attributes["subresource"]), (&json!("things"), &json!("status")));
    }
}
