//go:build unix && !linux

package cluster

// unmountLazily has nothing to do: a containerd node needs Linux.
func unmountLazily(string) error { return nil }
