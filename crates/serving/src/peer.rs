//! The name in a client certificate.

use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

/// Tags of ASN.1, and the identifier of a common name (2.5.4.3), as they are encoded.
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const PRINTABLE_STRING: u8 = 0x13;
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];

/// The common name of a certificate, which is the user name in Kubernetes. The certificate has been verified.
pub(crate) fn common_name(certificate: &CertificateDer<'_>) -> Option<String> {
    let certificate = EndEntityCert::try_from(certificate).ok()?;
    let mut names = common_names(certificate.subject())?.into_iter();
    // With two names it would not be clear which one was vouched for.
    names.next().filter(|_| names.next().is_none())
}

/// All common names of a subject: a list of sets of pairs of identifier and text. None if it is anything else.
fn common_names(mut subject: &[u8]) -> Option<Vec<String>> {
    let mut names = Vec::new();
    while !subject.is_empty() {
        let mut set = expect(SET, &mut subject)?;
        while !set.is_empty() {
            let mut pair = expect(SEQUENCE, &mut set)?;
            let identifier = expect(OBJECT_IDENTIFIER, &mut pair)?;
            let (tag, text) = element(&mut pair)?;
            if identifier == COMMON_NAME {
                let is_text = [UTF8_STRING, PRINTABLE_STRING].contains(&tag);
                names.push(String::from_utf8(text.to_vec()).ok().filter(|_| is_text)?);
            }
        }
    }
    Some(names)
}

fn expect<'a>(tag: u8, rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    element(rest).filter(|(found, _)| *found == tag).map(|(_, content)| content)
}

/// The next element of DER: its tag and its content. Lengths beyond two bytes do not occur in names.
fn element<'a>(rest: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (&[tag, first], mut after) = rest.split_first_chunk()?;
    let length = match first {
        0..=0x7f => usize::from(first),
        0x81 => {
            let (&byte, more) = after.split_first()?;
            after = more;
            usize::from(byte)
        }
        0x82 => {
            let (bytes, more) = after.split_first_chunk()?;
            after = more;
            usize::from(u16::from_be_bytes(*bytes))
        }
        _ => return None,
    };
    let (content, after) = after.split_at_checked(length)?;
    *rest = after;
    Some((tag, content))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair};

    use super::*;

    fn name(parts: &[(DnType, DnValue)]) -> Option<String> {
        let mut params = CertificateParams::new(vec!["other.example.com".into()]).unwrap();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in parts {
            params.distinguished_name.push(kind.clone(), value.clone());
        }
        common_name(params.self_signed(&KeyPair::generate().unwrap()).unwrap().der())
    }

    #[test]
    fn the_common_name_is_read_and_nothing_else_counts() {
        let text = |text: &str| DnValue::Utf8String(text.into());
        let printable = || DnValue::PrintableString("prometheus".try_into().unwrap());
        let long = "x".repeat(300);
        let cases = [
            (vec![], None),
            (vec![(DnType::OrganizationName, text("o"))], None),
            (vec![(DnType::CommonName, text(crate::PROMETHEUS))], Some(crate::PROMETHEUS)),
            (vec![(DnType::CommonName, printable())], Some("prometheus")),
            (vec![(DnType::OrganizationName, text("o")), (DnType::CommonName, text("n"))], Some("n")),
            (vec![(DnType::CommonName, text("n")), (DnType::CountryName, printable())], Some("n")),
            (vec![(DnType::CommonName, text("ünïcode"))], Some("ünïcode")),
            (vec![(DnType::CommonName, text(&long))], Some(long.as_str())),
            (vec![(DnType::OrganizationName, text(&long)), (DnType::CommonName, text("n"))], Some("n")),
        ];
        for (parts, expected) in cases {
            assert_eq!(name(&parts).as_deref(), expected, "{parts:?}");
        }
        assert_eq!(common_name(&CertificateDer::from(b"no certificate".to_vec())), None);
    }

    #[test]
    fn a_subject_that_is_cut_off_or_has_two_names_has_none() {
        let pair = |text: &[u8]| {
            let mut inside =
                vec![OBJECT_IDENTIFIER, 3, 0x55, 0x04, 0x03, UTF8_STRING, u8::try_from(text.len()).unwrap()];
            inside.extend(text);
            let mut pair =
                vec![SET, u8::try_from(inside.len() + 2).unwrap(), SEQUENCE, u8::try_from(inside.len()).unwrap()];
            pair.extend(inside);
            pair
        };
        let one = pair(b"a");
        assert_eq!(common_names(&one), Some(vec!["a".to_owned()]));
        assert_eq!(common_names(&[one.clone(), pair(b"b")].concat()), Some(vec!["a".to_owned(), "b".to_owned()]));
        for length in 1..one.len() {
            assert_eq!(common_names(&one[..length]), None, "{length} bytes");
        }
        assert_eq!(common_names(&pair(&[0xff])), None, "not text");
        assert_eq!(common_names(&[SET, 0x83, 0, 0, 1]), None, "a length that no name has");
    }
}
