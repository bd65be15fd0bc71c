// What `tenure completion` does and takes: its help, its parser and its completion come of this text (kit/description.ts).

import { describe } from "../kit/description.ts";

export const COMPLETION = describe(
  "completion",
  "a script for your shell: bash, zsh, fish",
  `tenure completion SHELL: prints a script that completes commands and flags.

  bash               source <(tenure completion bash), in ~/.bashrc
  zsh                source <(tenure completion zsh), in ~/.zshrc, below compinit
  fish               tenure completion fish | source, in ~/.config/fish/config.fish

  --help             this text
`,
);
