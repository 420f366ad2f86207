// Command cluster builds, starts and stops a real local Kubernetes. See docs/cluster.md.
package main

import (
	_ "embed"
	"os"

	"github.com/mcptest/mcptest-operator/hack/cluster/internal/cli"
)

// goMod names the versions of everything that a cluster consists of.
//
//go:embed go.mod
var goMod []byte

func main() { os.Exit(cli.Main(goMod, os.Args[1:])) }
