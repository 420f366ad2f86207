// Command probe is what the containers of the node's stories run.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: probe cat OUT FILE... | exit CODE | wait CODE | ignore | env NAME...")
		os.Exit(2)
	}
	args := os.Args[2:]
	switch os.Args[1] {
	case "cat": // the content of files into another one, line by line, and to standard output
		out, err := os.Create(args[0])
		check(err)
		for _, name := range args[1:] {
			data, err := os.ReadFile(name)
			check(err)
			fmt.Println(string(data))
			_, err = fmt.Fprintln(out, string(data))
			check(err)
		}
		check(out.Close())
	case "env":
		for _, name := range args {
			fmt.Printf("%s=%s\n", name, os.Getenv(name))
		}
	case "exit":
		fmt.Println("leaving with", args[0])
		os.Exit(number(args[0]))
	case "wait": // for SIGTERM
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM)
		fmt.Println("waiting")
		<-signals
		os.Exit(number(args[0]))
	case "ignore":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ignoring")
		for {
			time.Sleep(time.Hour)
		}
	}
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	check(err)
	return n
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
