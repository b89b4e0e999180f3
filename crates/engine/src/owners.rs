//! The programs that own releases or objects. Everything that Interlock knows of one of them stands in its folder.

pub mod flux;
pub mod olm;
pub mod sveltos;
