// Compiles the dashboard against the types that Grafana publishes for its JSON model, then proves that the same check finds faults.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const here = dirname(fileURLToPath(import.meta.url));
const dashboard = JSON.parse(readFileSync(join(here, '../../manifests/chart/files/dashboard.json'), 'utf8'));

// The module with the options of each type of panel.
const PANELS = { stat: 'stat/panelcfg/x/StatPanelCfg', timeseries: 'timeseries/panelcfg/x/TimeSeriesPanelCfg' };

// JSON has the values of enums, and Grafana fills in what the options of a panel leave out.
const TYPES = `
type Json<T> = T extends string ? \`\${T}\` : T extends number | boolean | null | undefined ? T
  : T extends (infer U)[] ? Json<U>[] : T extends object ? { [K in keyof T]: Json<T[K]> } : T;
type Some<T> = T extends (infer U)[] ? Some<U>[] : T extends object ? { [K in keyof T]?: Some<T[K]> } : T;
`;

// A literal of its own for each panel: TypeScript reports unknown keys only in literals.
function program(board) {
  const { panels, ...rest } = board;
  const lines = [`import type { Dashboard, Panel, RowPanel } from '@grafana/schema';`, TYPES];
  for (const [type, path] of Object.entries(PANELS)) {
    lines.push(`import type * as ${type} from '@grafana/schema/dist/esm/raw/composable/${path}_types.gen';`);
  }
  const declare = (name, type, value) => lines.push(`export const ${name}: ${type} = ${JSON.stringify(value)};`);
  declare('board', `Json<Omit<Dashboard, 'panels'>>`, rest);
  for (const [index, panel] of panels.entries()) {
    if (panel.type === 'row') {
      declare(`row${index}`, 'Json<RowPanel>', panel);
      continue;
    }
    if (!(panel.type in PANELS)) throw new Error(`panel ${panel.id}: add the type ${panel.type} to PANELS`);
    const { options, ...others } = panel;
    declare(`panel${index}`, 'Json<Panel>', others);
    declare(`options${index}`, `Some<Json<${panel.type}.Options>>`, options ?? {});
    const custom = panel.fieldConfig?.defaults?.custom;
    if (custom) declare(`custom${index}`, `Some<Json<${panel.type}.FieldConfig>>`, custom);
  }
  return lines.join('\n');
}

// The errors of the compiler, one a line.
function faults(board) {
  // Below this directory, where the compiler finds node_modules.
  const scratch = mkdtempSync(join(here, 'check-'));
  try {
    const file = join(scratch, 'dashboard.ts');
    writeFileSync(file, program(board));
    const options = { strict: true, noEmit: true, skipLibCheck: true, types: [], target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler };
    const found = ts.getPreEmitDiagnostics(ts.createProgram([file], options));
    return found.map((one) => ts.flattenDiagnosticMessageText(one.messageText, ' '));
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

const found = faults(dashboard);
if (found.length > 0) {
  console.error(found.join('\n'));
  process.exit(1);
}

const BREAKS = {
  'an unknown key of the dashboard': (board) => { board.refreshs = '1m'; },
  'a text for a number': (board) => { board.panels[1].gridPos.w = '4'; },
  'an unknown key of a panel': (board) => { board.panels[1].titel = 'x'; },
  'an unknown option': (board) => { board.panels[1].options.colourMode = 'value'; },
  'an unknown value of an option': (board) => { board.panels[1].options.colorMode = 'purple'; },
  'an unknown setting of a series': (board) => { board.panels.find((it) => it.fieldConfig?.defaults?.custom).fieldConfig.defaults.custom.fill = 1; },
  'an unknown type of a variable': (board) => { board.templating.list[0].type = 'source'; },
  'no version of the schema': (board) => { delete board.schemaVersion; },
};
for (const [what, break_] of Object.entries(BREAKS)) {
  const broken = structuredClone(dashboard);
  break_(broken);
  if (faults(broken).length === 0) {
    console.error(`the check does not find ${what}`);
    process.exit(1);
  }
}
console.log(`${dashboard.panels.length} panels fit the types of @grafana/schema; ${Object.keys(BREAKS).length} faults are found`);
