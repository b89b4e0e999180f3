//! What the headers of a program say.

use anyhow::{Context, bail};
use object::Endianness;
use object::elf::{EM_AARCH64, EM_X86_64, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};

/// The architecture of a static program, in the words of OCI. Any other program is an error: an image on nothing has no libraries.
pub(crate) fn static_architecture(program: &[u8]) -> anyhow::Result<&'static str> {
    let header = FileHeader64::<Endianness>::parse(program).context("not a program for 64 bits")?;
    let endian = header.endian()?;
    for segment in header.program_headers(endian, program)? {
        if let Some(loader) = segment.interpreter(endian, program)? {
            bail!("the program is not static: it asks for {}", String::from_utf8_lossy(loader));
        }
    }
    match header.e_machine(endian) {
        EM_X86_64 => Ok("amd64"),
        EM_AARCH64 => Ok("arm64"),
        other => bail!("there is no image for the machine {other}"),
    }
}
