//! The assignors of the broker: which there are, which of them a broker allows, and which one a group gets.

use std::{collections::BTreeMap, fmt};

/// An assignor of the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerAssignor {
    /// Evenly, and moves as little as it can.
    Uniform,
    /// Neighbouring partitions of each topic.
    Range,
}

impl ServerAssignor {
    /// All there are, Kafka's default first.
    pub const ALL: [Self; 2] = [Self::Uniform, Self::Range];

    /// Its name in heartbeats and settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Range => "range",
        }
    }
}

/// `group.consumer.assignors`: what members may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerAssignors {
    default: ServerAssignor,
    other: Option<ServerAssignor>,
}

impl Default for ServerAssignors {
    fn default() -> Self {
        let [default, other] = ServerAssignor::ALL;
        Self { default, other: Some(other) }
    }
}

impl ServerAssignors {
    /// Reads the names, the default first. An error says which name is wrong, and what there is.
    pub fn of_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut all = Vec::new();
        for name in names {
            let known = ServerAssignor::ALL.into_iter().find(|assignor| assignor.name() == name);
            let assignor = known.ok_or_else(|| format!("`{name}` is no assignor of the broker: {HINT}"))?;
            if all.contains(&assignor) {
                return Err(format!("`{name}` is there twice"));
            }
            all.push(assignor);
        }
        let default = all.first().ok_or_else(|| format!("at least one is needed: {HINT}"))?;
        Ok(Self { default: *default, other: all.get(1).copied() })
    }

    /// Those that are allowed, the default first.
    pub fn iter(self) -> impl Iterator<Item = ServerAssignor> {
        std::iter::once(self.default).chain(self.other)
    }

    /// Whether a member may ask for this one.
    pub fn allows(self, name: &str) -> bool {
        self.iter().any(|assignor| assignor.name() == name)
    }

    /// The assignor that most members ask for; those that do not ask, or ask for one that is not allowed any more, do
    /// not count.
    pub(super) fn preferred(self, asked: &BTreeMap<String, usize>) -> ServerAssignor {
        let votes = |assignor: ServerAssignor| asked.get(assignor.name()).copied().unwrap_or(0);
        self.other.filter(|other| votes(*other) > votes(self.default)).unwrap_or(self.default)
    }
}

const HINT: &str = "there are `uniform` and `range`";

impl fmt::Display for ServerAssignors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.default.name())?;
        self.other.map_or(Ok(()), |other| write!(f, ", {}", other.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_members_that_ask_for_an_assignor_vote() {
        let of = |allowed: ServerAssignors, names: &[Option<&str>]| {
            let mut asked = BTreeMap::new();
            names.iter().flatten().for_each(|name| *asked.entry((*name).to_owned()).or_default() += 1);
            allowed.preferred(&asked).name()
        };
        let all = ServerAssignors::default();
        assert_eq!(of(all, &[]), "uniform");
        assert_eq!(of(all, &[None, None, Some("range")]), "range");
        assert_eq!(of(all, &[Some("uniform"), Some("range"), Some("range")]), "range");
        assert_eq!(of(all, &[Some("uniform"), Some("range")]), "uniform");
        let range = ServerAssignors::of_names(["range"]).unwrap();
        assert_eq!(of(range, &[Some("uniform"), Some("uniform")]), "range");
    }

    #[test]
    fn names_are_read_with_the_default_first_and_refused_by_name() {
        let read = |names: &[&str]| ServerAssignors::of_names(names.iter().copied());
        assert_eq!(read(&["range", "uniform"]).unwrap().to_string(), "range, uniform");
        assert_eq!(read(&["uniform"]).map(|one| one.allows("range")), Ok(false));
        assert!(read(&["range", "sticky"]).unwrap_err().starts_with("`sticky` is no assignor of the broker"));
        assert_eq!(read(&["range", "range"]), Err("`range` is there twice".to_owned()));
        assert!(read(&[]).is_err());
    }
}
