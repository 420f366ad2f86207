package cluster

import (
	"fmt"
	"syscall"
)

// unmountLazily unmounts at once for everybody who looks, and for good when the last user is gone.
func unmountLazily(path string) error {
	if err := syscall.Unmount(path, syscall.MNT_DETACH); err != nil && err != syscall.EINVAL && err != syscall.ENOENT {
		return fmt.Errorf("unmount %s: %w", path, err)
	}
	return nil
}
