# Is read by the scripts beside it, in a mount namespace of their own: makes a root that has this machine's files below
# it, $over/root.
over=$(mktemp -d)
mount -t tmpfs tmpfs "$over"
mkdir "$over/upper" "$over/work" "$over/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$over/upper,workdir=$over/work" "$over/root"

# furnish mounts what programs need there that no systemd boots.
furnish() {
	mount -t proc proc "$over/root/proc"
	mount --rbind /dev "$over/root/dev"
	mount -t tmpfs tmpfs "$over/root/run"
	mount -t tmpfs tmpfs "$over/root/tmp"
}
