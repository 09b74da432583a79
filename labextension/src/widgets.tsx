/** The parts of the screen as JupyterLab takes them. */

import { NotebookPanel } from '@jupyterlab/notebook';
import { ReactWidget } from '@jupyterlab/ui-components';
import { IDisposable } from '@lumino/disposable';
import { Message } from '@lumino/messaging';
import * as React from 'react';

import { ListName } from './api';
import { Chip } from './components/Chip';
import { Panel } from './components/Panel';
import { Current, currentOf } from './current';
import { Desk, DeskProvider, useCurrent } from './desk';
import { gpuIcon } from './icons';

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

function CurrentChip(props: { readonly openMenu: OpenMenu }): React.JSX.Element {
  const current: Current | null = useCurrent();
  return <Chip current={current} className="gpb-Chip" onOpen={props.openMenu} />;
}
