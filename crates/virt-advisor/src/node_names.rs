//! The names of nodes on narrow screens: without the domain that all of them share.

/// From this width on there is room for whole names.
const WIDE: usize = 120;

/// How the nodes of a screen are named.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeNames {
    /// `.prod.example.com`; empty if names are whole.
    domain: String,
}

impl NodeNames {
    pub(crate) fn of<'a>(names: impl IntoIterator<Item = &'a str>, width: usize) -> Self {
        let shared = if width < WIDE { shared_domain(names) } else { None };
        NodeNames { domain: shared.unwrap_or_default().to_owned() }
    }

    pub(crate) fn short<'a>(&self, name: &'a str) -> &'a str {
        name.strip_suffix(&self.domain).unwrap_or(name)
    }

    /// A line about what is left out. Empty if nothing is.
    pub(crate) fn legend(&self) -> String {
        if self.domain.is_empty() { String::new() } else { format!("   nodes are named without {}\n", self.domain) }
    }
}

/// What follows the first label of all names, if it is the same. Addresses have no domain.
fn shared_domain<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let domain =
        |name: &'a str| name.find('.').map(|at| &name[at..]).filter(|_| name.parse::<std::net::IpAddr>().is_err());
    let mut domains = names.into_iter().map(domain);
    let first = domains.next()??;
    domains.all(|other| other == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_that_all_share_is_left_out_where_there_is_little_room() {
        let (one, two) = ("worker-1.prod.example.com", "worker-2.prod.example.com");
        let names = NodeNames::of([one, two], 80);
        assert_eq!(names.short(one), "worker-1");
        assert_eq!(names.legend(), "   nodes are named without .prod.example.com\n");
        assert_eq!(names.short("elsewhere.example.com"), "elsewhere.example.com");
        for (case, others, width) in [
            ("room for whole names", vec![one, two], 160),
            ("another domain", vec![one, "worker-2.lab.example.com"], 80),
            ("no domain", vec![one, "worker-2"], 80),
            ("addresses", vec!["10.0.0.1", "11.0.0.1"], 80),
            ("no node", vec![], 80),
        ] {
            assert_eq!(NodeNames::of(others, width), NodeNames::default(), "{case}");
        }
        assert_eq!(NodeNames::default().legend(), "");
    }
}
