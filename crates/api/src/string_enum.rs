//! A macro for enums of fixed words, so that the word in JSON, in the schema, in messages and in metrics is written once.

/// Defines an enum whose variants are fixed words.
///
/// The schema it yields is a bare `enum` without a description: schemars would otherwise put the Rust
/// type's documentation over that of the field, which is what `kubectl explain` has to show.
macro_rules! string_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ::serde::Serialize, ::serde::Deserialize)]
        pub enum $name {
            $($(#[$variant_meta])* #[serde(rename = $text)] $variant,)+
        }

        impl $name {
            /// Every word of the set, in the order of the schema.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word as it is written in the API.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl ::schemars::JsonSchema for $name {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                ::schemars::json_schema!({ "type": "string", "enum": [$($text,)+] })
            }
        }
    };
}

pub(crate) use string_enum;

#[cfg(test)]
mod tests {
    #![allow(unreachable_pub, reason = "the macro only writes public enums")]

    string_enum! {
        /// A set to try the macro on.
        pub enum Color {
            DarkRed = "dark-red",
            Blue = "Blue",
        }
    }

    #[test]
    fn the_same_word_is_used_everywhere() {
        for color in Color::ALL {
            assert_eq!(serde_json::to_value(color).unwrap(), color.as_str());
            assert_eq!(color.to_string(), color.as_str());
        }
        assert_eq!(format!("{:>9}", Color::DarkRed), " dark-red");
        let schema = schemars::schema_for!(Color).to_value();
        assert_eq!(schema["enum"], serde_json::json!(["dark-red", "Blue"]));
    }

    #[test]
    fn an_unknown_word_is_refused_and_the_error_lists_the_known_ones() {
        let error = serde_json::from_str::<Color>("\"blue\"").unwrap_err().to_string();
        assert!(error.contains("unknown variant `blue`, expected `dark-red` or `Blue`"), "{error}");
    }
}
