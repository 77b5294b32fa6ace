//! Man pages and shell completions of a program, from its command line.

use std::{fs, io, path::Path};

use clap::Command;
use clap_complete::Shell;

/// The folders of completions, by shell.
const SHELLS: [(Shell, &str); 3] =
    [(Shell::Bash, "bash"), (Shell::Zsh, "zsh"), (Shell::Fish, "fish")];

/// Writes a page for each command into `man`, and completions into `bash`, `zsh` and `fish` of the
/// folder.
///
/// # Errors
/// A folder cannot be created, or a file cannot be written.
pub fn write(program: Command, folder: &Path) -> io::Result<()> {
    let name = program.get_name().to_owned();
    for (shell, subfolder) in SHELLS {
        let path = folder.join(subfolder);
        fs::create_dir_all(&path)?;
        let file = clap_complete::generate_to(shell, &mut program.clone(), &name, &path)?;
        // Bash looks for a file with the name of the program.
        if shell == Shell::Bash {
            fs::rename(file, path.join(&name))?;
        }
    }
    let pages = folder.join("man");
    fs::create_dir_all(&pages)?;
    clap_mangen::generate_to(program, &pages)
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

    #[test]
    fn each_command_has_a_page_and_each_shell_completions() {
        let folder = tempfile::tempdir().unwrap();
        let serve = Command::new("serve").about("Run the daemon").arg(Arg::new("dir").long("dir"));
        let program = Command::new("demo").about("A demo").subcommand(serve);
        write(program, folder.path()).unwrap();
        for (file, part) in [
            ("man/demo.1", "A demo"),
            ("man/demo-serve.1", "Run the daemon"),
            ("bash/demo", "--dir"),
            ("zsh/_demo", "--dir"),
            ("fish/demo.fish", "dir"),
        ] {
            let text = fs::read_to_string(folder.path().join(file)).unwrap();
            assert!(text.replace("\\-", "-").contains(part), "{file}: {text}");
        }
    }
}
