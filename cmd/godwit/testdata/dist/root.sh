# Mounts, in $root, a root that has this machine's files below it. What is written there is lost with the mount
# namespace of the script that sources this.
over=$(mktemp -d)
mount -t tmpfs tmpfs "$over"
mkdir "$over/upper" "$over/work" "$over/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$over/upper,workdir=$over/work" "$over/root"
root=$over/root

# furnish mounts what programs need there that no systemd boots.
furnish() {
	mount -t proc proc "$root/proc"
	mount --rbind /dev "$root/dev"
	mount -t tmpfs tmpfs "$root/run"
	mount -t tmpfs tmpfs "$root/tmp"
}
