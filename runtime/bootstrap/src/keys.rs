//! Names of a communicator's entries in the store.

/// Builds the keys of one communicator. The crate documentation says which of them stay.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    root: String,
}

impl Keys {
    pub(crate) fn new(name: &str) -> Self {
        Self { root: format!("stepccl/{name}") }
    }

    /// Counter: the first rank to add writes [`Keys::first`].
    pub(crate) fn order(&self) -> String {
        format!("{}/order", self.root)
    }

    /// What the first rank to come expects of the others.
    pub(crate) fn first(&self) -> String {
        format!("{}/first", self.root)
    }

    /// A generated secret.
    pub(crate) fn secret(&self) -> String {
        format!("{}/secret", self.root)
    }

    /// Counter: who adds first holds the rank.
    pub(crate) fn claim(&self, rank: u32) -> String {
        format!("{}/claim/{rank}", self.root)
    }

    /// Who holds the rank, for messages.
    pub(crate) fn here(&self, rank: u32) -> String {
        format!("{}/here/{rank}", self.root)
    }

    /// What the rank publishes, with its proof.
    pub(crate) fn info(&self, rank: u32) -> String {
        format!("{}/info/{rank}", self.root)
    }

    /// All `info` in one value, so that a start needs as many store calls as there are ranks and
    /// not their square.
    pub(crate) fn table(&self) -> String {
        format!("{}/table", self.root)
    }

    /// Where other nodes reach the rank, with its proof.
    pub(crate) fn reach(&self, rank: u32) -> String {
        format!("{}/reach/{rank}", self.root)
    }

    /// All `reach` in one value.
    pub(crate) fn reaches(&self) -> String {
        format!("{}/reaches", self.root)
    }

    /// Why nobody can join any more.
    pub(crate) fn refused(&self) -> String {
        format!("{}/refused", self.root)
    }
}
