/** Everything that can be done for the notebook one is at, as commands: for the palette, the menu of the chip and shortcuts. */

import { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { CommandRegistry } from '@lumino/commands';
import { Menu } from '@lumino/widgets';

import { Desk, refusalText } from './desk';
import { gpuIcon } from './icons';
import { allowElsewhere } from './elsewhere';
import { canKeep, canPark, canRelease, canUnpark, Standing, standingOf } from './standing';
import { LeaseView } from './wire';
import { OpenMenu, PANEL_ID } from './widgets';
import { Words } from './words';

export const COMMANDS = {
  open: 'gpubroker:open',
  request: 'gpubroker:request',
  keep: 'gpubroker:keep',
  release: 'gpubroker:release',
  park: 'gpubroker:park',
  unpark: 'gpubroker:unpark',
  leave: 'gpubroker:leave-queue',
  runAsJob: 'gpubroker:run-as-job',
  allow: 'gpubroker:allow-notifications'
} as const;

type CommandId = (typeof COMMANDS)[keyof typeof COMMANDS];

interface Deed {
  readonly label: (words: Words) => string;
  readonly isPossible: (standing: Standing) => boolean;
  readonly execute: (desk: Desk, standing: Standing) => Promise<void>;
}

const DEEDS: readonly (readonly [CommandId, Deed])[] = [
  [
    COMMANDS.request,
    {
      label: words => words.requestGpu,
      isPossible: standing => standing.kind === 'none',
      execute: async (desk, standing) => {
        if (standing.kind === 'none') {
          await desk.api.request({ session_id: standing.session.id });
        }
      }
    }
  ],
  [
    COMMANDS.keep,
    onLease(
      words => words.keep,
      canKeep,
      (desk, lease) => desk.api.keep(lease)
    )
  ],
  [
    COMMANDS.unpark,
    onLease(
      words => words.unpark,
      canUnpark,
      (desk, lease) => desk.api.unpark(lease)
    )
  ],
  [
    COMMANDS.park,
    onLease(
      words => words.park,
      canPark,
      (desk, lease) => desk.api.park(lease)
    )
  ],
  [
    COMMANDS.release,
    onLease(
      words => words.release,
      canRelease,
      (desk, lease) => desk.api.release(lease)
    )
  ],
  [
    COMMANDS.leave,
    {
      label: words => words.leave,
      isPossible: standing => standing.kind === 'waits',
      execute: async (desk, standing) => {
        if (standing.kind === 'waits') {
          await desk.api.cancel('requests', standing.request.id);
        }
      }
    }
  ]
];

function onLease(
  label: (words: Words) => string,
  isPossible: (lease: LeaseView) => boolean,
  act: (desk: Desk, lease: LeaseView) => Promise<void>
): Deed {
  return {
    label,
    isPossible: standing => standing.kind === 'holds' && isPossible(standing.lease),
    execute: async (desk, standing) => {
      if (standing.kind === 'holds') {
        await act(desk, standing.lease);
      }
    }
  };
}

export function addCommands(app: JupyterFrontEnd, desk: Desk): void {
  const { commands } = app;
  const { store, words } = desk;
  const standing = (): Standing => {
    const kernelId = desk.current.getSnapshot()?.kernelId ?? null;
    return kernelId === null ? { kind: 'unknown' } : standingOf(store.snapshot, kernelId);
  };
  commands.addCommand(COMMANDS.open, {
    label: words.openPanel,
    icon: gpuIcon,
    execute: () => app.shell.activateById(PANEL_ID)
  });
  commands.addCommand(COMMANDS.runAsJob, {
    label: words.runAsJob,
    isEnabled: () => desk.current.getSnapshot() !== null,
    execute: () => {
      desk.jobForm.set('notebook');
      app.shell.activateById(PANEL_ID);
    }
  });
  commands.addCommand(COMMANDS.allow, { label: words.allowNotifications, execute: allowElsewhere });
  for (const [id, deed] of DEEDS) {
    commands.addCommand(id, {
      label: deed.label(words),
      isEnabled: () => deed.isPossible(standing()),
      isVisible: () => deed.isPossible(standing()),
      execute: async () => {
        try {
          await deed.execute(desk, standing());
        } catch (error) {
          Notification.error(refusalText(error, words), { autoClose: false });
        }
        await store.refresh('sessions');
      }
    });
  }
  store.changed.connect(() => DEEDS.forEach(([id]) => commands.notifyCommandChanged(id)));
}

/** The menu below a chip: what is possible now, and the way to the panel. */
export function menuOpener(commands: CommandRegistry): OpenMenu {
  const menu = new Menu({ commands });
  menu.addClass('gpb-Menu');
  DEEDS.forEach(([command]) => menu.addItem({ command }));
  menu.addItem({ type: 'separator' });
  menu.addItem({ command: COMMANDS.runAsJob });
  menu.addItem({ command: COMMANDS.open });
  return anchor => {
    const { left, bottom } = anchor.getBoundingClientRect();
    menu.open(left, bottom);
  };
}
