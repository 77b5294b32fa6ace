//! Small file systems, for tests of full disks.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// A small file system, which is unmounted when this value is dropped.
pub(crate) struct SmallDisk {
    dir: tempfile::TempDir,
    _image: Option<tempfile::TempDir>,
}

fn run_command(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|cause| format!("{command:?}: {cause}"))?;
    let text = || format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    if output.status.success() { Ok(()) } else { Err(text()) }
}

impl SmallDisk {
    /// Mounts a file system in memory.
    pub(crate) fn tmpfs(mib: u32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "granary-test"]);
        run_command(command.arg(dir.path())).unwrap();
        Self { dir, _image: None }
    }

    /// Mounts an image with a file system of this kind.
    pub(crate) fn loop_mounted(kind: &str, mib: u64) -> Result<Self, String> {
        let images = tempfile::tempdir().unwrap();
        let image = images.path().join("image");
        fs::File::create(&image).unwrap().set_len(mib << 20).unwrap();
        run_command(Command::new(format!("mkfs.{kind}")).arg("-q").arg(&image))?;
        let dir = tempfile::tempdir().unwrap();
        run_command(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(dir.path()))?;
        Ok(Self { dir, _image: Some(images) })
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Returns a folder whose data directory is in the file system.
    pub(crate) fn data_dir(&self) -> tempfile::TempDir {
        fs::create_dir(self.path().join("data")).unwrap();
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(self.path().join("data"), dir.path().join("data")).unwrap();
        dir
    }

    /// Returns the free bytes.
    pub(crate) fn free_bytes(&self) -> usize {
        let args = ["--output=avail", "--block-size=1"];
        let output = Command::new("df").args(args).arg(self.path()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().last().unwrap().trim().parse().unwrap()
    }

    /// Fills the file system with a file, except for half a mebibyte; returns the path of the file.
    pub(crate) fn fill(&self) -> PathBuf {
        let ballast = self.path().join("ballast");
        fs::write(&ballast, vec![1; self.free_bytes() - (512 << 10)]).unwrap();
        ballast
    }

    pub(crate) fn remount(&self, option: &str) {
        let mut command = Command::new("mount");
        run_command(command.args(["-o", &format!("remount,{option}")]).arg(self.path())).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The unmount is lazy, because the daemon of a failed test may still have files open.
        drop(Command::new("umount").arg("-l").arg(self.path()).status());
    }
}
