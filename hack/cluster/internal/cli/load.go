//go:build unix

package cli

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/mcptest/mcptest-operator/hack/cluster/internal/cluster"
	"github.com/mcptest/mcptest-operator/hack/cluster/internal/imagearchive"
)

func (t *tool) loadCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: "load ARCHIVE...", Short: "Import image archives into a cluster with a containerd node", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(t.locate(), cluster.CheckName(name)); err != nil {
				return err
			}
			return cluster.Load(cmd.Context(), cluster.In(t.root, name), args)
		},
	}
	cmd.Flags().StringVar(&name, "name", "dev", "the cluster's name")
	return cmd
}

func imageCommand() *cobra.Command {
	var image imagearchive.Image
	var out string
	cmd := &cobra.Command{
		Use: "image", Short: "Write an image archive of one folder, for tests", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			f, err := os.Create(out)
			if err != nil {
				return err
			}
			return errors.Join(imagearchive.Write(f, image), f.Close())
		},
	}
	cmd.Flags().StringVar(&image.Ref, "ref", "", "the image's full name, such as example.com/app:1")
	cmd.Flags().StringVar(&image.Rootfs, "rootfs", "", "the folder that becomes the image's root")
	cmd.Flags().StringArrayVar(&image.Entrypoint, "entrypoint", nil, "the program that runs (may be repeated, for arguments)")
	cmd.Flags().StringVar(&image.User, "user", "", "who runs it, such as 65532")
	cmd.Flags().StringVarP(&out, "output", "o", "", "the archive to write")
	for _, flag := range []string{"ref", "rootfs", "output"} {
		_ = cmd.MarkFlagRequired(flag) // fails only for a flag that does not exist
	}
	return cmd
}
