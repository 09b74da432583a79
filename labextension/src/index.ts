/** Puts the panel, the chips, the status bar item, commands and notices into JupyterLab, and ties them to the broker. */

import {
  ILabShell,
  ILayoutRestorer,
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, IToolbarWidgetRegistry } from '@jupyterlab/apputils';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator } from '@jupyterlab/translation';

import { BrokerApi } from './api';
import { addCommands, COMMANDS, menuOpener } from './commands';
import { CurrentNotebook } from './current';
import { Desk, JobForm } from './desk';
import { History } from './history';
import { Notices } from './notices';
import { Store } from './store';
import { Switch } from './switch';
import { ChipWidget, openOutput, PanelWidget, StatusWidget, StripWidget } from './widgets';
import { wordsFor } from './words';

const PLUGIN_ID = 'jupyter_gpubroker:plugin';
const CHANGED_SCHEMA_ID = 'https://jupyter-gpubroker.org/events/changed/v1';
const STATUS_RANK = 3;
const PANEL_RANK = 150;

const plugin: JupyterFrontEndPlugin<void> = {
  id: PLUGIN_ID,
  description: 'GPUs for notebooks: what one holds, waits for and could have.',
  autoStart: true,
  optional: [
    INotebookTracker,
    IToolbarWidgetRegistry,
    IStatusBar,
    ICommandPalette,
    ILayoutRestorer,
    ILabShell,
    ISettingRegistry,
    ITranslator
  ],
  activate
};

function activate(
  app: JupyterFrontEnd,
  tracker: INotebookTracker | null,
  toolbars: IToolbarWidgetRegistry | null,
  statusBar: IStatusBar | null,
  palette: ICommandPalette | null,
  restorer: ILayoutRestorer | null,
  labShell: ILabShell | null,
  registry: ISettingRegistry | null,
  translator: ITranslator | null
): void {
  const { serviceManager } = app;
  const api = new BrokerApi(serviceManager.serverSettings);
  const store = new Store(api);
  const desk: Desk = {
    api,
    store,
    history: new History(store),
    current: new CurrentNotebook(tracker),
    words: wordsFor(translator?.languageCode ?? 'en'),
    jobForm: new Switch<JobForm>('closed'),
    // In Notebook 7 the main area is the notebook's alone.
    openOutput: job => openOutput(app.shell, labShell === null ? 'down' : 'main', desk, job)
  };
  const preferences = { notify: true };
  addCommands(app, desk);
  const openMenu = menuOpener(app.commands);
  new Notices(desk, () => preferences.notify);

  const panel = new PanelWidget(desk);
  // Notebook 7 shows its side areas from the View menu.
  app.shell.add(panel, labShell === null ? 'right' : 'left', { rank: PANEL_RANK, type: 'GPU' });
  restorer?.add(panel, panel.id);

  const addStrip = (notebook: NotebookPanel): void =>
    notebook.contentHeader.addWidget(new StripWidget(desk, notebook));
  tracker?.forEach(addStrip);
  tracker?.widgetAdded.connect((_, notebook) => addStrip(notebook));
  toolbars?.addFactory<NotebookPanel>(
    'Notebook',
    'gpubroker',
    notebook => new ChipWidget(desk, notebook, openMenu)
  );
  statusBar?.registerStatusItem(PLUGIN_ID, {
    item: new StatusWidget(desk, openMenu),
    align: 'left',
    rank: STATUS_RANK
  });
  for (const command of Object.values(COMMANDS)) {
    palette?.addItem({ command, category: desk.words.panel });
  }
  registry
    ?.load(PLUGIN_ID)
    .then(settings => {
      const read = (): void => {
        preferences.notify = settings.composite['notify'] !== false;
      };
      settings.changed.connect(read);
      read();
    })
    .catch((error: unknown) =>
      console.warn('The settings of the GPU panel could not be read', error)
    );

  serviceManager.events.stream.connect((_, event) => {
    const resources = event['resources'];
    if (event.schema_id === CHANGED_SCHEMA_ID && Array.isArray(resources)) {
      store.hinted(resources.map(String));
    }
  });
  store.start();
}

export default plugin;
