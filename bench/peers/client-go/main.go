// Command client-go-peer does with client-go what this project does in Rust, so that both can be measured in one run.
//
// Each command is a peer of one figure; `client-go-peer --help` lists them. Figures go to the output, one per line.
// Commands that stay keep running until their input ends, so that they can be measured from outside and never outlive
// whoever started them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

// command is one subcommand. define declares its flags and returns what runs it.
type command struct {
	name, summary string
	stays         bool
	define        func(*flag.FlagSet) run
}

// run does a command's work and writes its lines to the output.
type run func(ctx context.Context, output io.Writer) error

var commands = []command{
	{"sync", "sync one pod informer, then stay: `synced N`, `settled`", true, defineSync},
	{"watch", "see N updates from the replay server, then stay: `synced N`, `done N`, `settled`", true, defineWatch},
	{"follow", "say every request and event of a config map informer until the input ends", true, defineFollow},
	{"replay", "serve pods and replay updates of them until the input ends; prints its URL", true, defineReplay},
	{"gateway", "serve lists from caches until the input ends; prints its URL when they have synced", true, defineGateway},
	{"fanout", "CPU time per event told to many handlers", false, defineFanout},
	{"labels", "time to list few of many pods by label", false, defineLabels},
	{"reads", "writes per second to a store, alone and while it is read", false, defineReads},
	{"queue", "CPU time per item that is brought through a work queue", false, defineQueue},
	{"delays", "CPU time and memory per item that comes in hours", false, defineDelays},
}

var errInputEnded = errors.New("the input ended before the work was done")

// usageError says what is wrong with the arguments.
type usageError string

func (e usageError) Error() string { return string(e) }

func main() {
	os.Exit(execute(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// execute runs the command that the arguments name and returns the exit code.
func execute(arguments []string, input io.Reader, output, problems io.Writer) int {
	if len(arguments) == 0 {
		overview(problems)
		return 2
	}
	for _, command := range commands {
		if command.name == arguments[0] {
			return command.execute(arguments[1:], input, output, problems)
		}
	}
	if name := arguments[0]; name == "help" || name == "-h" || name == "-help" || name == "--help" {
		overview(output)
		return 0
	}
	fmt.Fprintf(problems, "error: no command %q\n", arguments[0])
	overview(problems)
	return 2
}

func (c command) execute(arguments []string, input io.Reader, output, problems io.Writer) int {
	flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	run := c.define(flags)
	usage := func(to io.Writer) {
		fmt.Fprintf(to, "client-go-peer %s [flags]: %s\n", c.name, c.summary)
		flags.SetOutput(to)
		flags.PrintDefaults()
	}

	err := flags.Parse(arguments)
	switch {
	case errors.Is(err, flag.ErrHelp):
		usage(output)
		return 0
	case err == nil && flags.NArg() > 0:
		err = usageError("unexpected argument: " + flags.Arg(0))
	case err != nil:
		err = usageError(err.Error())
	default:
		ctx, end := context.WithCancelCause(context.Background())
		defer end(nil)
		if c.stays {
			go func() {
				_, _ = io.Copy(io.Discard, input)
				end(errInputEnded)
			}()
		}
		if err = run(ctx, output); errors.Is(err, context.Canceled) {
			err = context.Cause(ctx)
		}
	}
	if err == nil {
		return 0
	}
	fmt.Fprintln(problems, "error:", err)
	if _, wrong := errors.AsType[usageError](err); wrong {
		usage(problems)
		return 2
	}
	return 1
}

// stay returns when the input ends, or with the reason why the work cannot go on.
func stay(ctx context.Context) error {
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, errInputEnded) {
		return cause
	}
	return nil
}

func overview(to io.Writer) {
	fmt.Fprintln(to, "client-go-peer COMMAND [flags]: client-go, doing what is measured here in Rust")
	for _, command := range commands {
		fmt.Fprintf(to, "  %-8s %s\n", command.name, command.summary)
	}
	fmt.Fprintln(to, "`client-go-peer COMMAND --help` lists its flags.")
}
