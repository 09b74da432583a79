/** The parts of the screen as JupyterLab takes them. */

import { JupyterFrontEnd } from '@jupyterlab/application';
import { NotebookPanel } from '@jupyterlab/notebook';
import { ReactWidget } from '@jupyterlab/ui-components';
import { IDisposable } from '@lumino/disposable';
import { Message } from '@lumino/messaging';
import * as React from 'react';

import { ListName } from './api';
import { Chip } from './components/Chip';
import { Output } from './components/Output';
import { Panel } from './components/Panel';
import { Strip } from './components/Strip';
import { Current, currentOf } from './current';
import { Desk, DeskProvider, useCurrent } from './desk';
import { gpuIcon } from './icons';
import { JobLog } from './log';
import { Parked, parkedOf } from './standing';
import { clean } from './text';
import { JobView } from './wire';

export const PANEL_ID = 'jupyter-gpubroker-panel';

const IN_PANEL: readonly ListName[] = ['sessions', 'queue', 'gpus', 'jobs'];

export type OpenMenu = (anchor: HTMLElement) => void;

/** The side bar's panel. While hidden it asks for nothing and draws nothing. */
export class PanelWidget extends ReactWidget {
  constructor(private readonly desk: Desk) {
    super();
    this.id = PANEL_ID;
    this.addClass('gpb-Panel');
    this.title.icon = gpuIcon;
    this.title.caption = desk.words.panel;
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', desk.words.panel);
  }

  protected override render(): React.JSX.Element | null {
    return this.isVisible ? (
      <DeskProvider value={this.desk}>
        <Panel />
      </DeskProvider>
    ) : null;
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this.showing ??= this.desk.store.show(IN_PANEL);
    this.update();
  }

  protected override onBeforeHide(message: Message): void {
    super.onBeforeHide(message);
    this.stopShowing();
    this.update();
  }

  override dispose(): void {
    this.stopShowing();
    super.dispose();
  }

  private stopShowing(): void {
    this.showing?.dispose();
    this.showing = null;
  }

  private showing: IDisposable | null = null;
}

/** The chip in a notebook's toolbar. */
export class ChipWidget extends ReactWidget {
  constructor(
    private readonly desk: Desk,
    private readonly panel: NotebookPanel,
    private readonly openMenu: OpenMenu
  ) {
    super();
    this.addClass('gpb-ToolbarChip');
    const redraw = (): void => this.update();
    panel.sessionContext.kernelChanged.connect(redraw);
    panel.context.pathChanged.connect(redraw);
  }

  protected override render(): React.JSX.Element {
    return (
      <DeskProvider value={this.desk}>
        <Chip current={currentOf(this.panel)} className="gpb-Chip" onOpen={this.openMenu} />
      </DeskProvider>
    );
  }
}

/** The same for the notebook that one is at, in the status bar. */
export class StatusWidget extends ReactWidget {
  constructor(
    private readonly desk: Desk,
    private readonly openMenu: OpenMenu
  ) {
    super();
    this.addClass('gpb-StatusItem');
  }

  protected override render(): React.JSX.Element {
    return (
      <DeskProvider value={this.desk}>
        <CurrentChip openMenu={this.openMenu} />
      </DeskProvider>
    );
  }
}

/** Above a notebook, only while its GPU is parked. */
export class StripWidget extends ReactWidget {
  constructor(
    private readonly desk: Desk,
    private readonly panel: NotebookPanel
  ) {
    super();
    this.addClass('gpb-Strip');
    this.hide();
    desk.store.changed.connect(this.look);
    panel.sessionContext.kernelChanged.connect(this.look);
  }

  protected override render(): React.JSX.Element | null {
    const parked = this.parked;
    return parked === null ? null : (
      <DeskProvider value={this.desk}>
        <Strip {...parked} />
      </DeskProvider>
    );
  }

  override dispose(): void {
    this.desk.store.changed.disconnect(this.look);
    this.panel.sessionContext.kernelChanged.disconnect(this.look);
    super.dispose();
  }

  private readonly look = (): void => {
    const { kernelId } = currentOf(this.panel);
    const next = kernelId === null ? null : parkedOf(this.desk.store.snapshot, kernelId);
    if (next?.lease !== this.parked?.lease || next?.request !== this.parked?.request) {
      this.parked = next;
      this.setHidden(next === null);
      this.update();
    }
  };

  private parked: Parked | null = null;
}

/** What one batch job writes. While hidden it asks for nothing. */
class OutputWidget extends ReactWidget {
  constructor(
    private readonly desk: Desk,
    private readonly job: JobView
  ) {
    super();
    const { api, store, words } = desk;
    this.id = outputId(job);
    this.addClass('gpb-Output');
    this.title.label = words.outputOf(`${job.number} ${clean(job.name)}`);
    this.title.icon = gpuIcon;
    this.title.closable = true;
    const isOver = (): boolean =>
      store.snapshot.lists.jobs?.view.jobs.find(each => each.id === job.id)?.state === 'ended';
    this.log = new JobLog(api, job.id, isOver);
  }

  protected override render(): React.JSX.Element {
    return (
      <DeskProvider value={this.desk}>
        <Output jobId={this.job.id} log={this.log} />
      </DeskProvider>
    );
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    if (this.isVisible) {
      this.startShowing();
    }
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this.startShowing();
  }

  protected override onBeforeHide(message: Message): void {
    super.onBeforeHide(message);
    this.stopShowing();
  }

  override dispose(): void {
    this.stopShowing();
    super.dispose();
  }

  private startShowing(): void {
    this.showing ??= this.desk.store.show(['jobs']);
    this.log.follow();
  }

  private stopShowing(): void {
    this.log.unfollow();
    this.showing?.dispose();
    this.showing = null;
  }

  private readonly log: JobLog;
  private showing: IDisposable | null = null;
}

/** Bring a job's output to the front; it has one place on the screen. */
export function openOutput(
  shell: JupyterFrontEnd.IShell,
  area: 'main' | 'down',
  desk: Desk,
  job: JobView
): void {
  const isOpen = [...shell.widgets(area)].some(widget => widget.id === outputId(job));
  if (!isOpen) {
    shell.add(new OutputWidget(desk, job), area, { mode: 'split-bottom' });
  }
  shell.activateById(outputId(job));
}

function outputId(job: JobView): string {
  return `gpubroker-output-${job.id}`;
}

function CurrentChip(props: { readonly openMenu: OpenMenu }): React.JSX.Element {
  const current: Current | null = useCurrent();
  return <Chip current={current} className="gpb-Chip" onOpen={props.openMenu} />;
}
