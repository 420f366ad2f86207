package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by the linker: -X main.version=v1.2.3.
var version = "dev"

// versionText is the version, with the commit it was built from where that is known.
func versionText() string {
	commit := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" && len(setting.Value) >= 12 {
				commit = " (" + setting.Value[:12] + ")"
			}
		}
	}
	return fmt.Sprintf("mcptest-operator %s%s %s %s/%s", version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
