// Command kubectl-mcptest is the kubectl plugin of mcptest-operator, and its command line without a cluster.
package main

import (
	"os"

	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/cli"
)

func main() { os.Exit(cli.Main()) }
