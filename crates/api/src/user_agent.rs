//! The user agent of the programs, which the API server logs with every request.

use http::{HeaderName, HeaderValue, header::USER_AGENT};

/// `virt-advisor/0.1.0 (operator)`: the component is the part of the program that makes the requests.
pub fn user_agent(component: &str) -> String {
    format!("virt-advisor/{} ({component})", env!("CARGO_PKG_VERSION"))
}

/// Sets the user agent among the headers of a client.
pub fn set_user_agent(headers: &mut Vec<(HeaderName, HeaderValue)>, component: &str) -> http::Result<()> {
    let value = HeaderValue::try_from(user_agent(component))?;
    headers.retain(|(name, _)| name != USER_AGENT);
    headers.push((USER_AGENT, value));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_name_is_the_one_that_is_sent_and_other_headers_stay() {
        let other = (HeaderName::from_static("impersonate-user"), HeaderValue::from_static("jane"));
        let mut headers = vec![other.clone()];
        set_user_agent(&mut headers, "devcluster").unwrap();
        set_user_agent(&mut headers, "vm-controller").unwrap();
        let expected = format!("virt-advisor/{} (vm-controller)", env!("CARGO_PKG_VERSION"));
        assert_eq!(headers, [other, (USER_AGENT, expected.parse().unwrap())]);
    }

    #[test]
    fn a_component_that_does_not_fit_into_a_header_is_an_error() {
        assert!(set_user_agent(&mut Vec::new(), "two\nlines").is_err());
    }
}
