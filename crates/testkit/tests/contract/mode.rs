//! The two ways in which a classic group rebalances, for tests that run in both.

/// Eager or cooperative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Everything is revoked before members join.
    Eager,
    /// Only what moves is revoked.
    Cooperative,
}

impl Mode {
    pub const ALL: [Self; 2] = [Self::Eager, Self::Cooperative];

    /// The assignor that the tests of this mode use.
    pub fn assignor(self) -> &'static str {
        match self {
            Self::Eager => "range",
            Self::Cooperative => "cooperative-sticky",
        }
    }

    /// How tests in this mode are called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Eager => "eager",
            Self::Cooperative => "cooperative",
        }
    }

    /// The first in eager mode, the second in cooperative mode.
    pub fn pick<T>(self, eager: T, cooperative: T) -> T {
        match self {
            Self::Eager => eager,
            Self::Cooperative => cooperative,
        }
    }
}
