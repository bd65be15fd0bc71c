// `tenure completion bash|zsh|fish`: a script that completes commands, verbs, flags and their values. It is made from the
// table of commands and asks no server: pressing a key must not wait for a network.

import { COMPLETION } from "./help.ts";
import { COMMANDS, valueFlags } from "./table.ts";
import { type Description, type FlagLine, flagsOf, kindsOf, type Offer, verbsOf, wordsOf } from "../kit/description.ts";
import { parseFlags, UsageError } from "../kit/flags.ts";
import { chosen } from "../kit/words.ts";
import { printed } from "../kit/print.ts";

const SHELLS = verbsOf(COMPLETION);

export async function completion(args: readonly string[]): Promise<number> {
  const { values, words, rest } = parseFlags(args, kindsOf(COMPLETION));
  if (values.help !== undefined) return printed(COMPLETION.help);
  const [word, more] = [...words, ...(rest ?? [])];
  const shell = chosen(word, SHELLS);
  if (more !== undefined) throw new UsageError(`${shell} takes no ${JSON.stringify(more)}`);
  return printed(SCRIPTS[shell]());
}

/** What may follow these words. */
interface Place {
  readonly path: string;
  readonly next: Offer;
}

function places(): Place[] {
  return [
    { path: "", next: COMMANDS.map(({ name }) => name) },
    ...COMMANDS.flatMap((command): Place[] => [
      { path: command.name, next: verbsOf(command) },
      ...Object.entries(wordsOf(command)).flatMap(([verb, next]): Place[] => {
        const path = `${command.name} ${verb}`;
        if (typeof next === "string") return [{ path, next }];
        return [{ path, next }, ...next.map((one): Place => ({ path: `${path} ${one}`, next: "file" }))];
      }),
    ]),
  ].filter(({ next }) => next !== "any" && next !== "none" && next.length > 0);
}

/** `case` arms of bash and zsh: what follows a flag, what follows a word, and a command's flags. */
function arms(files: string, offer: (names: readonly string[]) => string) {
  const valueArm = ({ name }: Description, { name: flag, offer: value }: FlagLine): string[] => {
    if (value === "none") return [];
    return [
      `    "${name} ${flag}") ${value === "file" ? files : value === "any" ? "" : offer(value)}; return ;;`.replace(
        ") ;",
        ") :;",
      ),
    ];
  };
  return {
    values: COMMANDS.flatMap((command) => flagsOf(command).flatMap((flag) => valueArm(command, flag))).join("\n"),
    flags: COMMANDS.map(
      (command) => `      "${command.name}") ${offer(flagsOf(command).map((flag) => flag.name))} ;;`,
    ).join("\n"),
    words: places()
      .map(({ path, next }) => `    "${path}") ${next === "file" ? files : offer(next as readonly string[])} ;;`)
      .join("\n"),
  };
}

function bash(): string {
  const { values, flags, words } = arms(
    'COMPREPLY=($(compgen -f -- "$cur"))',
    (names) => `COMPREPLY=($(compgen -W "${names.join(" ")}" -- "$cur"))`,
  );
  return `# tenure completion bash
_tenure() {
  # Not COMP_WORDS: they are cut at every colon of a URL.
  local line="\${COMP_LINE:0:COMP_POINT}" path="" word i
  local -a words
  read -ra words <<<"$line"
  [[ "$line" == *" " ]] && words+=("")
  local last=$((\${#words[@]} - 1))
  local cur="\${words[last]}" prev="\${words[last - 1]}"
  COMPREPLY=()
  for ((i = 1; i < last; i++)); do
    word="\${words[i]}"
    case " ${valueFlags().join(" ")} " in *" $word "*) ((i++)); continue ;; esac
    case "$word" in
      --) compopt -o default 2>/dev/null; return ;;
      -*) ;;
      *) path="\${path:+$path }$word" ;;
    esac
  done
  case "\${path%% *} $prev" in
${values}
  esac
  if [[ "$cur" == -* ]]; then
    case "\${path%% *}" in
${flags}
    esac
    return
  fi
  case "$path" in
${words}
  esac
}
complete -o filenames -F _tenure tenure
`;
}

function zsh(): string {
  const { values, flags, words } = arms("_files", (names) => `compadd -- ${names.join(" ")}`);
  return `#compdef tenure
# tenure completion zsh
_tenure() {
  local cur="\${words[CURRENT]}" prev="\${words[CURRENT-1]}" so_far="" word i
  for ((i = 2; i < CURRENT; i++)); do
    word="\${words[i]}"
    case " ${valueFlags().join(" ")} " in *" $word "*) ((i++)); continue ;; esac
    case "$word" in
      --) _normal; return ;;
      -*) ;;
      *) so_far="\${so_far:+$so_far }$word" ;;
    esac
  done
  case "\${so_far%% *} $prev" in
${values}
  esac
  if [[ "$cur" == -* ]]; then
    case "\${so_far%% *}" in
${flags}
    esac
    return
  fi
  case "$so_far" in
${words}
  esac
}
compdef _tenure tenure
`;
}

function fishFlag(command: string, { name, offer: value }: FlagLine): string {
  const option = name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`;
  const line = `complete -c tenure -n '__tenure_in ${command}' ${option}`;
  if (value === "none") return line;
  if (value === "file") return `${line} -r -F`;
  return value === "any" ? `${line} -x` : `${line} -x -a '${value.join(" ")}'`;
}

function fish(): string {
  const wordLines = places().map(
    ({ path, next }) =>
      `complete -c tenure -n '__tenure_at "${path}"' ${next === "file" ? "-F" : `-a '${(next as readonly string[]).join(" ")}'`}`,
  );
  return `# tenure completion fish
function __tenure_path
  set -l path
  set -l skip 0
  for word in (commandline -opc)[2..]
    if test $skip = 1
      set skip 0
    else if contains -- $word ${valueFlags().join(" ")}
      set skip 1
    else if not string match -q -- '-*' $word
      set -a path $word
    end
  end
  echo "$path"
end
function __tenure_at
  test (__tenure_path) = "$argv[1]"
end
function __tenure_in
  string match -q -- "$argv[1]*" (__tenure_path)
end
complete -c tenure -f
${wordLines.join("\n")}
${COMMANDS.flatMap((command) => flagsOf(command).map((flag) => fishFlag(command.name, flag))).join("\n")}
`;
}

const SCRIPTS = { bash, zsh, fish } as const;
