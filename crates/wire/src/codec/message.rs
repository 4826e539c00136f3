//! `fields!` and `message!`: one table is the struct, its encoding and its decoding in every version.
//!
//! A row reads `name: Type [versions] (tag n) = default;`. The versions are those in which the field exists; with a tag
//! it travels as a tagged field of flexible versions, and only when it differs from its default, as Kafka writes it. After
//! `null` come the versions in which null may be written, where those are not all; in the others it goes out as empty.
//! `tag n always` is a struct which Kafka writes even when it is null, with 0 or 1 in front of it.

/// A struct whose fields each exist in a range of versions.
macro_rules! fields {
    ($(#[$meta:meta])* $name:ident {
        $($(#[$fmeta:meta])* $field:ident : $t:ty [$versions:expr] $((null $nulls:expr))?
            $((tag $tag:literal $($always:ident)?))? $(= $default:expr)?;)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs)]
        pub struct $name { $($(#[$fmeta])* pub $field: $t,)* }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: fields!(@default $t $(, $default)?),)* }
            }
        }

        impl $crate::codec::Wire for $name {
            #[allow(unused_variables, unused_mut)]
            fn put(&self, out: &mut $crate::codec::Writer, version: i16, flexible: bool) {
                $(fields!(@put self, out, version, flexible, $field, $versions $(, null $nulls)? $(, tag $tag)?);)*
                if flexible {
                    let mut tagged: Vec<(u32, $crate::codec::Writer)> = Vec::new();
                    $(fields!(@put_tagged self, tagged, version, $field, $versions,
                        [$($tag $($always)?)?] [$t $(, $default)?]);)*
                    $crate::codec::put_tagged(out, tagged);
                }
            }

            #[allow(unused_variables, unused_mut)]
            fn get(
                reader: &mut $crate::codec::Reader,
                version: i16,
                flexible: bool,
            ) -> Result<Self, $crate::codec::DecodeError> {
                let mut message = Self::default();
                $(fields!(@get message, reader, version, flexible, $field, $t, $versions $(, null $nulls)? $(, tag $tag)?);)*
                if flexible {
                    for _ in 0..reader.uvarint()? {
                        let tag = reader.uvarint()?;
                        let size = reader.uvarint()? as usize;
                        let mut value = reader.part(size)?;
                        $(fields!(@get_tagged message, value, tag, version, $field, $t, $versions
                            $(, tag $tag $($always)?)?);)*
                        reader.part_done(value);
                    }
                }
                Ok(message)
            }
        }

        impl $crate::codec::Wire for Option<$name> {
            fn put(&self, out: &mut $crate::codec::Writer, version: i16, flexible: bool) {
                match self {
                    None => $crate::codec::Wire::put(&-1i8, out, version, flexible),
                    Some(value) => {
                        $crate::codec::Wire::put(&1i8, out, version, flexible);
                        $crate::codec::Wire::put(value, out, version, flexible);
                    }
                }
            }
            fn get(
                reader: &mut $crate::codec::Reader,
                version: i16,
                flexible: bool,
            ) -> Result<Self, $crate::codec::DecodeError> {
                if <i8 as $crate::codec::Wire>::get(reader, version, flexible)? < 0 { return Ok(None); }
                Ok(Some(<$name as $crate::codec::Wire>::get(reader, version, flexible)?))
            }
        }
    };

    (@default $t:ty) => { <$t>::default() };
    (@default $t:ty, $default:expr) => { $default };

    (@put $self:ident, $out:ident, $v:ident, $flex:ident, $field:ident, $versions:expr) => {
        if ($versions).contains(&$v) { $crate::codec::Wire::put(&$self.$field, $out, $v, $flex); }
    };
    (@put $self:ident, $out:ident, $v:ident, $flex:ident, $field:ident, $versions:expr, null $nulls:expr) => {
        if ($versions).contains(&$v) {
            if ($nulls).contains(&$v) {
                $crate::codec::Wire::put(&$self.$field, $out, $v, $flex);
            } else {
                $crate::codec::Nullable::put_required(&$self.$field, $out, $v, $flex);
            }
        }
    };
    (@put $self:ident, $out:ident, $v:ident, $flex:ident, $field:ident, $versions:expr, tag $tag:literal) => {};

    (@put_tagged $self:ident, $tagged:ident, $v:ident, $field:ident, $versions:expr, [] [$($default:tt)*]) => {};
    (@put_tagged $self:ident, $tagged:ident, $v:ident, $field:ident, $versions:expr, [$tag:literal] [$($default:tt)*]) => {
        if ($versions).contains(&$v) && $self.$field != fields!(@default $($default)*) {
            let mut value = $crate::codec::Writer::new();
            $crate::codec::Wire::put(&$self.$field, &mut value, $v, true);
            $tagged.push(($tag, value));
        }
    };

    (@put_tagged $self:ident, $tagged:ident, $v:ident, $field:ident, $versions:expr, [$tag:literal always] [$t:ty]) => {
        if ($versions).contains(&$v) {
            let mut value = $crate::codec::Writer::new();
            $crate::codec::put_present(&mut value, &$self.$field, $v);
            $tagged.push(($tag, value));
        }
    };

    (@get $m:ident, $r:ident, $v:ident, $flex:ident, $field:ident, $t:ty, $versions:expr) => {
        if ($versions).contains(&$v) { $m.$field = <$t as $crate::codec::Wire>::get($r, $v, $flex)?; }
    };
    (@get $m:ident, $r:ident, $v:ident, $flex:ident, $field:ident, $t:ty, $versions:expr, null $nulls:expr) => {
        if ($versions).contains(&$v) {
            $m.$field = <$t as $crate::codec::Wire>::get($r, $v, $flex)?;
            if $m.$field.is_none() && !($nulls).contains(&$v) {
                return Err($crate::codec::DecodeError::UnexpectedNull);
            }
        }
    };
    (@get $m:ident, $r:ident, $v:ident, $flex:ident, $field:ident, $t:ty, $versions:expr, tag $tag:literal) => {};

    (@get_tagged $m:ident, $value:ident, $seen:ident, $v:ident, $field:ident, $t:ty, $versions:expr) => {};
    (@get_tagged $m:ident, $value:ident, $seen:ident, $v:ident, $field:ident, $t:ty, $versions:expr, tag $tag:literal) => {
        if $seen == $tag && ($versions).contains(&$v) {
            $m.$field = <$t as $crate::codec::Wire>::get(&mut $value, $v, true)?;
        }
    };
    (@get_tagged $m:ident, $value:ident, $seen:ident, $v:ident, $field:ident, $t:ty, $versions:expr, tag $tag:literal always) => {
        if $seen == $tag && ($versions).contains(&$v) {
            $m.$field = $crate::codec::get_present(&mut $value, $v)?;
        }
    };
}

/// A message: `fields!` and the versions it exists in.
macro_rules! message {
    ($(#[$meta:meta])* $name:ident versions $low:literal..=$high:literal, flexible $flexible:expr, { $($body:tt)* }) => {
        fields! { $(#[$meta])* $name { $($body)* } }
        impl $crate::codec::Message for $name {
            const VERSIONS: std::ops::RangeInclusive<i16> = $low..=$high;
            const FLEXIBLE: i16 = $flexible;
        }
    };
}
