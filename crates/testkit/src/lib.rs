//! What the tests of tontine stand on.
